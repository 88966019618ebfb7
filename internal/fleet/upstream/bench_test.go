package upstream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// What telling costs beside an acknowledgement alone.
func BenchmarkTelling(b *testing.B) {
	for name, tell := range map[string]func(*Upstream, Claim) error{
		"acknowledgement alone": func(u *Upstream, c Claim) error { return u.request(b.Context(), c, ackAnswered) },
		"answer without a reply": func(u *Upstream, c Claim) error {
			c.Reply = ""
			_, err := u.Answer(b.Context(), c, done("it is done"))
			return err
		},
		"answer": func(u *Upstream, c Claim) error {
			_, err := u.Answer(b.Context(), c, done("it is done"))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, fleet.Start(b))
			u := w.agent()
			for b.Loop() {
				b.StopTimer()
				c := w.message("", "one")
				c.ID = c.name()
				b.StartTimer()
				require.NoError(b, tell(u, c))
			}
		})
	}
}
