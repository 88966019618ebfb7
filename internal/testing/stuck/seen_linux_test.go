package stuck

import (
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
)

// look is how the rig's inbox is looked at.
func (r *rig) look() Look {
	l := Look{Inbox: r.inbox(), Project: r.path("cwd"), Scratch: r.path("home/told"), Verb: func(verb string, args ...string) string {
		out, _ := r.run("", verb, args...) // its status says that something is wrong
		return out
	}}
	if r.wiring == host {
		l.Hosted = func() string {
			out, err := r.command(filepath.Join(commands, "heartbeat-host"), "list", "--running", "--json").Output()
			require.NoError(r.t, err)
			return string(out)
		}
	}
	l.Launched = func() string {
		text, _ := os.ReadFile(r.path("report")) // of a launcher that has ended, if any
		return string(text)
	}
	return l
}

// sees waits until a person is told so wherever somebody looks.
func (r *rig) sees(want Seen) {
	r.t.Helper()
	r.until(want.Kind+" ("+want.State+") to be told", func() bool {
		r.lacks = r.look().Missing(want)
		return r.lacks == ""
	})
}

// isOver waits until nobody is told so any more.
func (r *rig) isOver(of Seen) {
	r.t.Helper()
	r.until(of.Kind+" ("+of.State+") to be over", func() bool { return r.look().Over(of) })
}

// shifts moves every time that was kept: see [Shift].
func (r *rig) shifts(by time.Duration) {
	r.t.Helper()
	transcripts, err := filepath.Glob(r.path("transcripts/*"))
	require.NoError(r.t, err)
	require.NoError(r.t, Shift(by, r.inbox(), transcripts...))
}
