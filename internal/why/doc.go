// Package why says in one sentence why nothing moves in an inbox.
//
// It decides over facts that others gathered, and looks at nothing itself.
package why
