// Package why says in one sentence why nothing moves in an inbox. It decides from facts
// that others gathered, and reads nothing itself.
package why
