package session

import (
	"crypto/subtle"
	"strings"
)

// Promise is the text between the first <promise> of a message and the next </promise>,
// trimmed, with runs of white space collapsed to one space. ok is false if there is no such
// pair. Only the first pair counts, as with the CLI.
func Promise(message string) (value string, ok bool) {
	_, rest, opened := strings.Cut(message, "<promise>")
	value, _, closed := strings.Cut(rest, "</promise>")
	if !opened || !closed {
		return "", false
	}
	return strings.Join(strings.FieldsFunc(value, isSpace), " "), true
}

// Kept reports whether the message promises the proof. An empty proof is never promised.
func Kept(message, proof string) bool {
	value, ok := Promise(message)
	return ok && proof != "" && subtle.ConstantTimeCompare([]byte(value), []byte(proof)) == 1
}
