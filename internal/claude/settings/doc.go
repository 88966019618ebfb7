// Package settings adds heartbeat's hooks to a Claude Code settings file, and removes them again. It also edits a
// project's .mcp.json and Codex's hooks.json.
//
// The file is the user's: an install only adds members and changes its own. White space, key order, comments, the
// spelling of numbers and strings, line ends and a byte order mark stay as they are. docs/reference.md shows what is
// written.
//
// # Taking it back
//
// Before the first change, a copy of the file is kept beside it as settings.json.before-heartbeat. When the last of
// heartbeat's members goes and the file then differs from the copy in white space at most, the copy is put back. A
// forged copy therefore brings nothing into the settings. If somebody changed the file in between, heartbeat's members
// are removed, with the objects and arrays that this leaves empty and that were not there before. The rest stays,
// comments too. A file that did not exist before is removed once it is empty, and so is a directory that was made: an
// empty file .made-by-heartbeat marks it. Earlier releases kept no copy; what they wrote is removed as well.
//
// Hooks of other inboxes are never touched. Another wiring of the same inbox is changed in place.
//
// # Limits
//
// The file is not locked: a program that writes it at the same instant can lose its edit or undo ours. A change is
// noticed up to the last moment before the write (ErrChanged). Claude Code 2.1.329 loads nothing from a file with
// comments or trailing commas: see [Content.Lax].
package settings
