// Package screen recognises what the terminal of a Codex session shows.
//
// [Recognise] classifies its text, and [Advise] says what a person can do about it.
//
// The wording comes from recordings of the client in testdata/screens, made with
// the release that is named there. Under `codex exec` there is only text, of which
// [LastWords] reads the end.
package screen
