package worlds_test

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// model is where each entry of a world is. Every entry is in one place.
type model struct {
	Queued    []string // in their order, what was given back first
	InFlight  string
	Answered  []string
	Dead      []string // canceled ones too, without what was requeued
	Scheduled []timed
	// Expires is when entries expire, for those that have such a time.
	Expires map[string]time.Time
	// Early is when dead entries are due that were canceled before their time.
	Early map[string]time.Time
}

// timed is an entry that waits for its time.
type timed struct {
	Text string
	due  time.Time
}

func (m model) clone() model {
	m.Queued, m.Answered, m.Dead = slices.Clone(m.Queued), slices.Clone(m.Answered), slices.Clone(m.Dead)
	m.Scheduled, m.Expires, m.Early = slices.Clone(m.Scheduled), maps.Clone(m.Expires), maps.Clone(m.Early)
	return m
}

func (m model) String() string {
	var scheduled []string
	for _, e := range m.Scheduled {
		scheduled = append(scheduled, e.Text)
	}
	return fmt.Sprintf("queued %v, in flight %q, answered %v, dead %v, scheduled %v", m.Queued, m.InFlight, m.Answered, m.Dead, scheduled)
}

// deliver puts the next entry in flight, and sets those before it aside that have
// expired.
func (m *model) deliver(now time.Time) {
	for len(m.Queued) > 0 {
		next := m.Queued[0]
		m.Queued = m.Queued[1:]
		if at, ok := m.Expires[next]; !ok || !now.After(at) {
			m.InFlight = next
			return
		}
		m.Dead = append(m.Dead, next)
	}
}

// promote queues the entries whose time has come.
func (m *model) promote(now time.Time) {
	var later []timed
	for _, e := range m.Scheduled {
		if e.due.After(now) {
			later = append(later, e)
		} else {
			m.Queued = append(slices.Clip(m.Queued), e.Text)
		}
	}
	m.Scheduled = later
}
