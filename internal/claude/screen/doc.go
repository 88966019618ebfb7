// Package screen tells what the terminal of a Claude Code session shows.
//
// A [Screen] is the terminal: it takes the bytes that the client prints. [Recognise]
// says of its text what that is, so that whoever started the session without
// anybody in front of it can say why it does not begin.
//
// Nothing here answers a dialog. They ask a person for consent.
//
// What is recognised follows from recordings of the client in testdata/screens.
// They are as old as the release that is named there.
package screen
