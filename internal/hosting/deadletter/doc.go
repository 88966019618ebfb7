// Package deadletter keeps the reports of hosted sessions that their guild has not
// taken yet.
//
// A report is written to its file before it is first sent, and the file goes once the
// guild has taken it, so a report is lost at no kill. It may be sent twice, and the
// guild applies it once.
//
// The letters are in the folder dlq beside the database: records as SESSIONID.json,
// where the guild of the babysitter drains them too, running reports as
// running/SESSIONID.json, which that guild must not find. A report that the guild
// refused stays where it is and gets a mark in refused/, so that it is not sent again
// until someone asks for it.
//
// Letters of the babysitter itself are in .nexus/dlq below a session's working
// directory, where the session's agent can write too: see [Drain].
package deadletter
