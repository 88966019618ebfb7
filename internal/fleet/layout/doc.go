// Package layout makes what agents need on a server, and opens it: the stream, its
// consumers, the buckets of results and of agents, the stream of dead letters, and the
// store of long replies.
//
// What is there already is held against what was asked for alone. What a server can change
// is changed; what agents cannot work with is refused, before anything is changed.
package layout
