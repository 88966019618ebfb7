// Package proxy serves the tools of a guild to one client over the Model Context
// Protocol.
//
// It listens on loopback only, and only who holds its token is served. Two
// transports lead to the same tools:
//
//	/sse  and /message  HTTP with server-sent events (protocol 2024-11-05)
//	/mcp                streamable HTTP (protocol 2025-03-26 and later)
//
// The proxy knows tools and calls, not the guild: what a call does is the business
// of the function that it is given.
package proxy
