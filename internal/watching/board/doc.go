// Package board is what is shown and what keys do to it. It draws nothing, reads
// nothing and changes no inbox: it says what is to be done.
package board
