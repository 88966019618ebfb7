package book

import "time"

// Patience is how long a followed thing waits for its price, which the client writes a moment after the turn's end.
const Patience = 3 * time.Second

// Queue holds back followed things until their prices are complete, so that each is shown once and in order. The
// zero value is empty.
type Queue[T any] struct{ held []held[T] }

type held[T any] struct {
	thing T
	since time.Time
}

// Add appends things to those that wait.
func (q *Queue[T]) Add(now time.Time, things ...T) {
	for _, thing := range things {
		q.held = append(q.held, held[T]{thing, now})
	}
}

// All returns the things that wait.
func (q *Queue[T]) All() (all []T) {
	for _, h := range q.held {
		all = append(all, h.thing)
	}
	return all
}

// Ready takes out the first things, up to one that is not complete and has not waited for [Patience].
func (q *Queue[T]) Ready(now time.Time, complete func(T) bool) (ready []T) {
	for len(q.held) > 0 {
		first := q.held[0]
		waited := now.Sub(first.since).Abs() // a clock may be set back
		if !complete(first.thing) && waited < Patience {
			break
		}
		ready, q.held = append(ready, first.thing), q.held[1:]
	}
	return ready
}

// Rest takes out all.
func (q *Queue[T]) Rest() []T {
	all := q.All()
	q.held = nil
	return all
}
