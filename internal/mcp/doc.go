// Package mcp gives an inbox as tools of the Model Context Protocol, to agents, producers and
// operators.
//
// Nothing is decided here: agents speak through internal/task, producers send as `heartbeat
// send` does, and what operators do are the verbs of heartbeat.
package mcp
