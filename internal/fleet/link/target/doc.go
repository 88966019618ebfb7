// Package target says which NATS server a command connects to, and as whom: from flags,
// from NATS_URL, and from the contexts of the nats CLI. It connects to nothing.
package target
