// Package stuck brings each state about in which nothing moves, with the commands as they are
// shipped and a stand-in for the client, under each way to wire a session, and looks whether
// what tells a person says so, and no longer once it is over. What looks is for other tests, too.
package stuck
