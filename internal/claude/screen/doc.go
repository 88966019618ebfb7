// Package screen recognises what the terminal of a Claude Code session shows.
//
// A [Screen] is the terminal: it takes the bytes that the client prints. [Recognise]
// classifies its text, so that a launcher with nobody at the terminal can say why a
// session does not begin.
//
// Nothing here answers a dialog: dialogs ask a person for consent.
//
// The wording comes from recordings of the client in testdata/screens, made with
// the release that is named there.
package screen
