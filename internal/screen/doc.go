// Package screen is what the terminal of a session shows: a [Screen] takes the bytes that a
// client prints, and a [Sight] is what one of its texts was recognised as, so that a
// launcher with nobody at the terminal can say why a session does not begin. The packages
// screen of the clients recognise it, each by its own client's words.
//
// Nothing here answers a dialog: dialogs ask a person for consent.
package screen
