package message

import (
	"bytes"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"heartbeat/internal/fleet/names"
)

const (
	// maxHeaders and maxHeaderBytes bound which headers of a message are kept for its dead
	// letter: the first ones, by their names.
	maxHeaders     = 100
	maxHeaderBytes = 16 << 10
)

// kept are the headers of a message that its sender gave it, as lines NAME:VALUE, and how
// many were left out.
func kept(h nats.Header) (lines [][]byte, left int) {
	all := make([]string, 0, len(h))
	for name := range h {
		if isSenders(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	size := 0
	for _, name := range all {
		for _, value := range h[name] {
			if size += len(name) + 1 + len(value); len(lines) >= maxHeaders || size > maxHeaderBytes {
				left++
				continue
			}
			lines = append(lines, []byte(name+":"+value))
		}
	}
	return lines, left
}

// Restore gives a message the headers that were kept in lines. What is none that a sender
// gives is left out: who wrote the lines was an agent.
func Restore(h nats.Header, lines []string) {
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if found && isSenders(name) && !strings.ContainsAny(value, "\r\n\x00") {
			h.Add(name, value)
		}
	}
}

// isSenders tells headers that the sender chose from those of JetStream, which would count
// once more, and from those that a requeued message is given anew.
func isSenders(name string) bool {
	switch name {
	case "", names.HeaderID, names.HeaderAgain, names.HeaderReply:
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || c == ':' {
			return false
		}
	}
	const reserved = "nats-"
	return len(name) < len(reserved) || !bytes.EqualFold([]byte(name[:len(reserved)]), []byte(reserved))
}
