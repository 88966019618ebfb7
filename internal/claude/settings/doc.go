// Package settings writes heartbeat's hooks into a Claude Code settings file, and takes them out again. It
// edits a project's .mcp.json likewise, and Codex's hooks.json.
//
// The file is the user's: an install only adds, and changes its own members. White space, key order, comments, the spelling
// of numbers and strings, line ends and a byte order mark stay as they are. docs/reference.md shows what is written.
//
// # Taking it back
//
// Before the first change the file as it is is kept beside it, as settings.json.before-heartbeat. When the last of
// heartbeat's members goes, and the file then is what it was but for white space, that very file is put back; so whoever
// writes another one under that name brings nothing into the settings. Where somebody changed the file in between, the
// members of heartbeat's are taken out, with the objects and arrays that are empty then and were not there before, and the
// rest stays, comments too. A file that was not there goes once it is empty, and so does a directory that was made: an
// empty file .made-by-heartbeat in it says so. Earlier releases kept no file; what they wrote is taken out as well.
//
// Hooks of other inboxes are never touched. Another wiring of the same inbox is changed in its place.
//
// # Limits
//
// The file is not locked: a program that writes it at the same instant can lose its edit or undo ours, though a change
// is noticed up to the last moment before the write (ErrChanged). Claude Code 2.1.329 loads nothing from a file with
// comments or trailing commas: see [Content.Lax].
package settings
