// Package settings writes heartbeat's hooks into a Claude Code settings file and takes them out again.
//
// The file is the user's, so an edit only ever inserts or deletes bytes of heartbeat's own: white space, key order,
// comments, number and string spellings, line ends, a byte order mark and a missing final newline of everything else
// stay as they are. What is inserted follows the indentation and the line ends of the place it goes to:
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
// Where an event is wired in the background, its hook has another "timeout", and "asyncRewake": true behind that.
//
// # Guarantees
//
// Install of the same wiring twice changes nothing the second time. Uninstall after Install gives back the very bytes
// there were before, or nil when there was no file; what was edited elsewhere in between stays edited. Hooks of another
// inbox are never touched. What another wiring of the same inbox wrote, Install turns into its own as if that had never
// been there. After an error the file is as it was, with one exception told in the error: the directory could not be
// synced after the new file was in place.
//
// # How the way back is remembered
//
// Nothing is stored beside the settings file. Two things have to be known to undo an install, and the file says both:
//
//   - Whether an object or array that held only our hooks was there before, empty. If so, Install leaves a blank line
//     (or a space, where there are no lines) before its closing bracket. Without that mark, an object or array that becomes
//     empty is taken to be ours and goes too. A tool that reformats the file removes the mark; then an empty "hooks",
//     "Stop" or "env" of the user goes with ours, which configures the same.
//   - Whether a variable of Wiring.Env was already set to our value. If so, it is the user's: Install names it in the
//     variable HEARTBEAT_KEEP_ENV, beside it in "env", and Uninstall takes away that note only. This survives
//     reformatting. In the usual case, where the variable was not set, there is no such note.
//
// # Variables
//
// A variable that is set to another value is never overwritten: Install returns an EnvError and a person decides. A
// wiring with DropEnv refuses none; it takes out the variables of the wiring there was, unless they are noted as the
// user's or a heartbeat hook of another inbox is left to need them.
// Uninstall removes a variable only with the last heartbeat hook in exec form, whatever its inbox, and only while it
// still has the value of the wiring.
//
// # What it does not do
//
// It does not lock the file: another program that writes it at the same instant can lose its edit or undo ours, though
// a change between reading and writing is noticed up to the last moment (ErrChanged). It keeps the file's mode but not
// a foreign owner, because the file is replaced. It does not remove a directory it made. An empty file counts as no
// file, and an Uninstall that leaves nothing removes it. If a hook for another inbox was wired in exec form without
// the variables, an Install beside it adds them and they stay until that hook goes as well.
//
// Comments, trailing commas and a byte order mark are kept where they are; whether Claude Code reads a file with them is
// another matter, and has not been measured.
//
// All functions may be called concurrently on different files; the ones over bytes on anything.
package settings
