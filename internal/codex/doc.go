// Package codex holds what heartbeat knows about OpenAI's Codex: which process the client
// is, what its rollout files show, and what a hook's text may have. It knows nothing about
// queues. All behaviour was measured on release 0.169.0.
//
// A rollout is a session's transcript, a JSONL file. Its lines have a type and a payload;
// those of type event_msg tell what happened, in order:
//
//	task_started    a turn begins, with its turn_id
//	item_completed  an item of the turn: UserMessage, HookPrompt, AgentMessage, a tool's call ...
//	task_complete   the turn ended, after its Stop hooks have approved that, or with an error
//	turn_aborted    a person ended it
//
// What a Stop hook blocked with is one HookPrompt, with a fragment for each hook.
package codex
