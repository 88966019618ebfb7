// Package folder is what a hosted session has on disk: where its files are, the
// lock that its host holds for life, its state record, and the index by which a
// session is found from its id alone.
//
// Folders are private to their user. Everything that is read back is bounded and
// follows no links, since the session's agent can write there.
package folder
