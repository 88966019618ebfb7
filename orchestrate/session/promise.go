package session

import (
	"crypto/subtle"
	"strings"
)

// Promise is what stands between the first <promise> of a message and the
// </promise> that follows it, with white space trimmed and runs of it collapsed to
// one space; ok is false where there is no such pair. Only the first pair counts,
// as with the CLI.
func Promise(message string) (value string, ok bool) {
	_, rest, opened := strings.Cut(message, "<promise>")
	value, _, closed := strings.Cut(rest, "</promise>")
	if !opened || !closed {
		return "", false
	}
	return strings.Join(strings.FieldsFunc(value, isSpace), " "), true
}

// Kept reports whether a message promises the proof. An empty proof is no proof.
func Kept(message, proof string) bool {
	value, ok := Promise(message)
	return ok && proof != "" && subtle.ConstantTimeCompare([]byte(value), []byte(proof)) == 1
}
