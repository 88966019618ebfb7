// Package script runs the testscript files of the commands, and has the commands
// and programs that these scripts use.
//
//	status N COMMAND...                          a command and its exact exit status
//	asuser N COMMAND...                          the same, as a plain user
//	turn SESSION PROMPT ACTIVE REPLY [FLAG...]   a Stop, as the client reports it
//	event NAME SESSION PROMPT [MEMBER=TEXT...]   any other event
//	request ID TOKENS                            the model's answer that asks for a tool
//	delivered TEXT, approved                     what the hook decided
//	queue LINE..., append FILE BYTES             what a producer writes
//	lines FILE N, json FILE LINE PATH VALUE      what is in the files
//	snapshot NAME, unchanged NAME                nothing was touched
//	run NAME COMMAND...                          a command beside the script
//	start NAME SESSION PROMPT ACTIVE REPLY ...   a Stop hook beside the script
//	signal NAME TERM, finish NAME [STATUS]       what happens to these
//	waiting NAME                                 a hook waits for the inbox to change
//	await exists FILE, await dead PID, ...       a bounded wait instead of a sleep
//	client NAME, later NAME EVENT ..., woken ... a session that is woken
//
// PROMPT may be `-`, for a client that has no prompt_id. Variables: INBOX is the
// inbox that the commands are about. With TRANSCRIPT set, turn writes that file as
// the client does; MUTE=feedback leaves out what the hook delivers, MUTE=all
// everything. STAMP is what the client's clock shows. HOOK names another program
// for start.
package script
