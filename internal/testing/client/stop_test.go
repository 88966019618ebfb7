package client

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// A launcher that is told to stop in the midst of an entry lets the client answer it, and
// hands over no other; the next launcher goes on with what waits.
func TestManagedStoppedWarm(t *testing.T) {
	for _, mode := range []string{"drain", "persist"} {
		t.Run(mode, func(t *testing.T) {
			ctx := within(t)
			all := some(3, verbatim)
			how, letGo := held(ctx, all[1].tag)
			r := newRig(t, how)
			for i := range all {
				all[i] = r.send(all[i])
			}
			m := r.managing(ctx, "--mode", mode, "--drain-timeout", "10m")
			r.asked(ctx, all[1].tag, 1)
			require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
			r.until(ctx, "the launcher holds back what waits", func() bool {
				sign, err := os.ReadFile(r.path(".launch-lock"))
				return err == nil && strings.Contains(string(sign), "once the entry in flight is answered")
			})
			letGo()
			w, log := m.wait()
			assert.Equal(t, "stopped", w.Reason, "%q", log)
			assert.Equal(t, worked{Reason: "stopped", Detail: w.Detail, Answered: 2, Queued: 1, Sessions: 1}, w)
			r.sessionsGone(ctx)
			m = r.managing(ctx)
			w, _ = m.wait()
			assert.Equal(t, 1, w.Answered)
			r.settled(answeredOnce(all...)...)
		})
	}
}

// At a second signal the client is ended, and the entry is given back: its next delivery is
// its first attempt.
func TestManagedStoppedTwice(t *testing.T) {
	ctx := within(t)
	all := some(2, verbatim)
	r := newRig(t, first(all[0].tag, model.Hang()))
	for i := range all {
		all[i] = r.send(all[i])
	}
	m := r.managing(ctx, "--on-orphan", "retry", "--max-attempts", "1")
	r.asked(ctx, all[0].tag, 1)
	r.run("", "stop", "--now")
	w, log := m.wait()
	assert.Equal(t, worked{Reason: "stopped", Detail: w.Detail, Redelivered: 1, Queued: 2, Sessions: 1}, w, "%q", log)
	r.sessionsGone(ctx)
	m = r.managing(ctx, "--on-orphan", "retry", "--max-attempts", "1")
	w, _ = m.wait()
	assert.Equal(t, 2, w.Answered)
	fates := answeredOnce(all...)
	fates[0].arrivals = 2
	r.settled(fates...)
}
