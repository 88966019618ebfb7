// Package evidence is what heartbeat's hook keeps with a delivery, so that whoever
// settles it later can tell whether the model ever got the text, and whose turn
// brings the answer.
package evidence
