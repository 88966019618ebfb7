// Package draw draws a board as the lines of a terminal. It knows of no terminal: a
// line is text, perhaps painted, and every text of others in it is cleaned.
package draw
