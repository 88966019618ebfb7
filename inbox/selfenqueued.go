package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/internal/flat"
)

// SelfEnqueued is what is known of the entries that agents sent into this inbox while they
// worked on one.
type SelfEnqueued struct {
	Count int64     `json:"count"`
	Last  time.Time `json:"last"`
	// Left is how many more may come at Last, where a rate holds.
	Left float64 `json:"left"`
}

// RateError says that agents send too much.
type RateError struct {
	PerHour int
	After   time.Duration // when the next one may come
}

// Error is a sentence.
func (e *RateError) Error() string {
	return fmt.Sprintf("agents may send %d entries an hour into this inbox, and have: the next one may come in %v", e.PerHour, e.After.Round(time.Second))
}

// AppendSelf is [Inbox.Append] of an entry that an agent sends while it works on one. It is
// counted with the commit that appends it; no more than perHour are let in, 0 for no limit:
// the error is a [RateError] then, and nothing was appended.
func (b *Inbox) AppendSelf(ctx context.Context, m Message, settle time.Duration, perHour int) (Receipt, error) {
	all, err := b.appendAll(ctx, []Message{m}, settle, func(int) {}, func(t *Tx) error { return t.countSelf(perHour) })
	if len(all) == 0 {
		return Receipt{}, err
	}
	return all[0], err
}

// countSelf takes one from what may still come, which grows back over the hour.
func (t *Tx) countSelf(perHour int) error {
	now, most := t.box.utcNow(), float64(perHour)
	s := selfEnqueued(t.st.SelfEnqueued)
	if perHour > 0 {
		if s.Count == 0 || s.Left > most {
			s.Left = most
		}
		// Where the clock was set back, the hour that it was ahead must not hold for longer.
		s.Left = min(most, s.Left+most*now.Sub(s.Last).Abs().Hours())
		if s.Left < 1 {
			return &RateError{PerHour: perHour, After: time.Duration((1 - s.Left) / most * float64(time.Hour))}
		}
		s.Left--
	}
	s.Count, s.Last = s.Count+1, now
	var err error
	t.st.SelfEnqueued, err = flat.JSON(s)
	return err
}

// SelfEnqueued is what agents sent into this inbox; the zero value for nothing.
func (v *View) SelfEnqueued() SelfEnqueued { return selfEnqueued(v.tx.st.SelfEnqueued) }

func selfEnqueued(record []byte) (s SelfEnqueued) {
	if len(record) > 0 {
		_ = json.Unmarshal(record, &s) // the record's sum was right
	}
	return s
}
