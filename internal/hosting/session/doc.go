// Package session is the life of one hosted session: it runs the client round after
// round on the session's inbox, watches it, ends it when it has to, and reports what
// became of it. [Finish] does the last part of that for a session whose host is dead.
package session
