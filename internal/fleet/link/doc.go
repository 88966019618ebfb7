// Package link is the connection to a NATS server: made once with a sentence for what is
// wrong, and then kept for ever. While the server is away, nothing that is published is
// kept back for later: it fails at once, and who published it decides what to do.
package link
