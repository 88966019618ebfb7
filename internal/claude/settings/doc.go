// Package settings writes heartbeat's hooks and its meter into a Claude Code settings file and removes them again.
//
// The file is the user's, so an edit only inserts or deletes heartbeat's own bytes. In everything else white space, key
// order, comments, the spelling of numbers and strings, line ends, a byte order mark and a missing final newline stay as
// they are. Inserted text follows the indentation and the line ends of its place:
//
//	{
//	  "hooks": {
//	    "Stop": [
//	      {
//	        "matcher": "",
//	        "hooks": [
//	          {
//	            "type": "command",
//	            "command": "/opt/heartbeat/heartbeat-stop",
//	            "args": [
//	              "--inbox",
//	              "/srv/inbox.jsonl"
//	            ],
//	            "timeout": 600
//	          }
//	        ]
//	      }
//	    ]
//	  },
//	  "env": {
//	    "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"
//	  }
//	}
//
// A hook that runs in the background has another "timeout", followed by "asyncRewake": true.
//
// # Guarantees
//
// A second Install of the same wiring changes nothing. Uninstall after Install restores every byte, or returns nil if
// there was no file; edits elsewhere in between stay. Hooks of other inboxes are never touched. Install turns another
// wiring of the same inbox into its own as if the other had never been there. After an error the file is as it was, with
// one exception that the error names: the directory could not be synced after the new file was in place.
//
// # How the old state is remembered
//
// Nothing is stored outside the settings file. Undoing an install takes some facts, and the file contains them:
//
//   - Whether an object or array that holds only our hooks existed before, empty. If so, Install leaves a blank line
//     (or a space, if the file has no lines) before its closing bracket. An object or array without that mark that becomes
//     empty is ours and goes too. A tool that reformats the file removes the mark; then an empty "hooks", "Stop" or "env"
//     of the user goes with ours, which does not change the configuration.
//
//   - Whether a variable of Wiring.Env already had our value. If so, it is the user's: Install names it in the variable
//     HEARTBEAT_KEEP_ENV, beside it in "env", and Uninstall removes only that note. This survives reformatting. If the
//     variable was not set, as is usual, there is no note.
//
//   - What the status line was: see below.
//
// # The status line
//
// The client runs one status line, so the meter stands before the one that the file has, and goes on as that:
//
//	"statusLine": {
//	  "type": "command",
//	  "command": "/opt/heartbeat/heartbeat-meter --inbox /srv/inbox.jsonl --then '~/.claude/line.sh'",
//	  "padding": 0,
//	  "refreshInterval": 5
//	}
//
// The person's line is quoted in its JSON spelling, so that uninstalling brings back every byte of it; its other members
// stay. Several inboxes in one file make a chain, in which the line behind --then is the meter of another one. They may
// go in any order. A comment at the end of the innermost meter's line says whether the refreshInterval is the person's,
// and whether the line behind --then is that of a file that this one has precedence over ([Meter].Below): that goes with
// the meter. What a person changes behind --then is theirs, and comes back changed.
//
// A status line that is not of type command stays as it is, without a meter, and so does one that would get longer than
// an argument can be. A line that a person wrote around the meter of the inbox is left alone by Install and Uninstall.
//
// # Variables
//
// A variable with another value is never overwritten: Install returns an EnvError, and a person decides. A wiring with
// DropEnv accepts any value. It removes the variables of the previous wiring, unless they are noted as the user's or a
// heartbeat hook of another inbox still needs them. Uninstall removes a variable only with the last heartbeat hook in
// exec form, of any inbox, and only if it still has the wiring's value.
//
// # Limits
//
// The file is not locked: a program that writes it at the same instant can lose its edit or undo ours, though a change
// is noticed up to the last moment before the write (ErrChanged). The file keeps its mode but not a foreign owner,
// because it is replaced. Directories that were made are not removed. An empty file counts as no file, and an Uninstall
// that leaves nothing removes it. If a hook of another inbox was wired by hand in exec form without the variables, an
// Install adds them, and they stay until that hook goes too.
//
// Comments, trailing commas and a byte order mark stay where they are. Claude Code 2.1.329 loads nothing from a file with
// comments or trailing commas: see [Content.Lax].
//
// The functions may be called concurrently on different files, those on bytes without any limit.
package settings
