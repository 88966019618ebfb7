// Package transcript keeps every message of a session in a SQLite database that
// others use too, and never lets that database hold the session up.
//
// [Store.Append] writes a message to a spool file and returns; from there a
// goroutine of its own moves it to the database, many messages in one transaction.
// While the database is locked, full, broken, read-only or gone, messages wait in the
// spool. Readers of a running session are served from the spool too.
//
// # What a kill may lose
//
// A message that Append has returned for survives a SIGKILL at any moment: it is in
// the spool. It is lost only if the spool could not be written (a full disk) and the
// database could not either, or if the spool reached its limit; [Store.Health] says
// that. Nothing is stored twice: a message's number is part of its key. A power loss
// may take the last seconds, since neither spool nor database is synced before the
// session's end.
//
// # Tables
//
//	heartbeat_messages           one row a message
//	books_animator_transcripts   the guild's own: one row a session, rewritten now and then
package transcript
