package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/model"
)

// long is an entry that fills a few blocks of a disk.
func long(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n)}
	e.line = strings.Repeat("some words and ", 600) + e.tag
	e.text = e.line
	return e
}

// The space of answered entries is freed while the session works, more than once. The
// entries after that are answered once each.
func TestHeartbeatCompact(t *testing.T) {
	var box *inbox.Inbox
	var freed []int64
	var failed error
	r := newRig(t, func(tag string, nth int) model.Reply {
		if tag == "[e10]" || tag == "[e20]" { // one request at a time: no lock is needed
			c, err := box.Compact(t.Context())
			freed, failed = append(freed, c.Freed), errors.Join(failed, err)
		}
		return own(tag, nth)
	}).install()
	var err error
	box, err = inbox.Open(r.inbox, inbox.Options{LockWait: patience})
	require.NoError(t, err)
	all := some(30, long)
	r.add(all...)
	r.drain(within(t), prompt(1), r.options())
	if errors.Is(failed, inbox.ErrNoHoles) {
		t.Skip("the file system of the temporary folder has no holes")
	}
	require.NoError(t, failed)
	require.Len(t, freed, 2)
	for _, n := range freed {
		assert.Positive(t, n)
	}
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, len(all)+1, r.turns())
}
