package orchestrate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
)

// overdue tells the process that an effect took longer than its task allows, once the
// effect's entry was in flight for that long. A result that the agent hands over later is
// refused.
func (s *step) overdue(ctx context.Context, w want, entry string) (posted bool, err error) {
	v, err := s.Box.View()
	if err != nil {
		return false, err
	}
	d := v.InFlight()
	if err := v.Close(); err != nil || d == nil || d.ID() != entry {
		return false, err
	}
	var ms float64
	if json.Unmarshal(d.Metadata()[effect.MetaTimeLimit], &ms) != nil || ms <= 0 {
		return false, nil
	}
	limit := time.Duration(ms * float64(time.Millisecond))
	if s.now().Sub(d.DeliveredAt) <= limit {
		return false, nil
	}
	return s.posted(w.Effect, s.CLI.PostError(ctx, s.Run.Dir(), w.Effect, babysitter.Failure{
		Name: "TimeoutError", Message: fmt.Sprintf("it was to be done within %v, and was not", limit),
	}, babysitter.Attachments{}))
}
