package worlds_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/testing/script"
)

// settle is a way for the entry in flight to end; back says that it waits again.
func (w *world) settle(next *model, how func(tx *inbox.Tx) error, to *[]string) error {
	if w.m.InFlight == "" {
		return nil
	}
	if to != nil {
		*to = append(*to, next.InFlight)
	}
	next.InFlight = ""
	return w.tx(how)
}

// deliver puts the next entry in flight.
func deliver(tx *inbox.Tx) error {
	e, err := tx.Next(inbox.Mark{})
	if errors.Is(err, inbox.ErrEmpty) || errors.Is(err, inbox.ErrTorn) {
		return nil
	}
	if err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	}
	return err
}

// kinds are what may happen. Each returns what the model is if it happened wholly.
var kinds = map[string]func(w *world, s step, next *model) error{
	"send": func(w *world, _ step, next *model) error {
		n := w.name()
		next.Queued = append(next.Queued, n)
		_, err := w.box.Append(context.Background(), inbox.Message{Text: n}, 0)
		return err
	},
	"batch": func(w *world, s step, next *model) error {
		var all []inbox.Message
		for range 1 + s.pick%4 {
			n := w.name()
			next.Queued = append(next.Queued, n)
			all = append(all, inbox.Message{Text: n})
		}
		_, err := w.box.AppendAll(context.Background(), all, 0)
		return err
	},
	"deliver": func(w *world, _ step, next *model) error {
		if w.m.InFlight != "" {
			return nil
		}
		next.deliver(w.now)
		return w.tx(deliver)
	},
	"turn": func(w *world, _ step, next *model) error {
		if w.m.InFlight == "" {
			return nil
		}
		next.Answered, next.InFlight = append(next.Answered, next.InFlight), ""
		next.deliver(w.now)
		return w.tx(func(tx *inbox.Tx) error { return errors.Join(answer(tx), deliver(tx)) })
	},
	"answer": func(w *world, _ step, next *model) error {
		return w.settle(next, answer, &next.Answered)
	},
	"dead letter": func(w *world, _ step, next *model) error {
		return w.settle(next, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }, &next.Dead)
	},
	"drop": func(w *world, _ step, next *model) error {
		return w.settle(next, (*inbox.Tx).Drop, nil)
	},
	"give back": func(w *world, s step, next *model) error {
		if w.m.InFlight == "" {
			return nil
		}
		next.Queued = slices.Insert(next.Queued, 0, next.InFlight)
		return w.settle(next, func(tx *inbox.Tx) error { return tx.GiveBack("", s.pick%2 == 0) }, nil)
	},
	"cancel": func(w *world, s step, next *model) error {
		if len(w.m.Queued) == 0 {
			return nil
		}
		i := s.pick % len(w.m.Queued)
		waiting, err := w.waiting()
		if err != nil || i >= len(waiting) {
			return err
		}
		w.canceled = true
		next.Dead = append(next.Dead, next.Queued[i])
		next.Queued = slices.Delete(next.Queued, i, i+1)
		return w.tx(func(tx *inbox.Tx) error {
			_, err := tx.Cancel(waiting[i].EntryID, waiting[i].Start)
			return err
		})
	},
	"pause": func(w *world, _ step, _ *model) error { return w.tx(pause) },
	"resume": func(w *world, _ step, _ *model) error {
		return w.tx(func(tx *inbox.Tx) error { return tx.Holds().Resume() })
	},
	"requeue": func(w *world, s step, next *model) error {
		letters, _, err := script.Letters(w.box)
		if err != nil {
			return err
		}
		letters = slices.DeleteFunc(letters, func(l inbox.Letter) bool { return w.box.Requeueable(l) != nil })
		if len(letters) == 0 {
			return nil
		}
		l := letters[s.pick%len(letters)]
		i := slices.Index(next.Dead, l.Text())
		if due := next.Early[l.Text()]; due.After(w.now) {
			next.Scheduled = append(next.Scheduled, timed{l.Text(), due})
		} else {
			next.Queued = append(next.Queued, l.Text())
		}
		delete(next.Early, l.Text())
		next.Dead = slices.Delete(next.Dead, i, i+1)
		return w.tx(func(tx *inbox.Tx) error { _, err := tx.Requeue(l, inbox.Mark{}); return err })
	},
	"schedule": func(w *world, s step, next *model) error {
		e := timed{Text: w.name(), due: w.now.Add(time.Duration(1+s.pick%3) * time.Hour)}
		m := inbox.Message{Text: e.Text, NotBefore: e.due}
		if s.pick%4 == 0 {
			m.Expires = e.due.Add(time.Duration(1+s.pick%5) * time.Hour)
			next.Expires[e.Text] = m.Expires
		}
		next.Scheduled = append(next.Scheduled, e)
		_, err := w.box.Append(context.Background(), m, 0)
		return err
	},
	"send what expires": func(w *world, s step, next *model) error {
		n := w.name()
		next.Queued = append(next.Queued, n)
		next.Expires[n] = w.now.Add(time.Duration(1+s.pick%3) * time.Hour)
		_, err := w.box.Append(context.Background(), inbox.Message{Text: n, Expires: next.Expires[n]}, 0)
		return err
	},
	"cancel what is scheduled": func(w *world, s step, next *model) error {
		all, err := w.box.Scheduled()
		if err != nil || len(all) == 0 {
			return err
		}
		e := all[s.pick%len(all)]
		i := slices.IndexFunc(next.Scheduled, func(t timed) bool { return t.Text == e.Text })
		next.Early[e.Text] = next.Scheduled[i].due
		next.Scheduled = slices.Delete(next.Scheduled, i, i+1)
		next.Dead = append(next.Dead, e.Text)
		return w.tx(func(tx *inbox.Tx) error { _, err := tx.CancelScheduled(e.EntryID); return err })
	},
	"an hour goes by": func(w *world, _ step, _ *model) error {
		return w.tx(func(*inbox.Tx) error { return nil }) // promotes what is due
	},
	"look": func(w *world, _ step, _ *model) error { return w.tx(func(*inbox.Tx) error { return nil }) },
	"compact": func(w *world, _ step, _ *model) error {
		_, err := w.box.Compact(context.Background())
		if errors.Is(err, inbox.ErrNoHoles) {
			return nil
		}
		return err
	},
}

// answer says the entry's text, by which its result is known.
func answer(tx *inbox.Tx) error {
	if tx.InFlight() == nil {
		return errors.New("nothing is in flight")
	}
	return tx.Acknowledge(tx.InFlight().Text())
}

func pause(tx *inbox.Tx) error {
	_, err := tx.Holds().Pause("", nil)
	return err
}
