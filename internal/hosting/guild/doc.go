// Package guild talks to the guild of a hosted session: the program that started the
// session, serves its tools over HTTP, and is told how the session lives and ends.
//
// A guild may be down or restart at any time, so every call backs off and tries again
// for as long as that can do no harm. A report ([Client.Running], [Client.Beat],
// [Client.Record]) may be repeated: the guild applies it once. A tool may not: it is
// called again only if no byte of the call was sent, or if the guild promised to
// recognise the call by its key ([Tool.Idempotent]).
package guild
