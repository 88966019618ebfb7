package command

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// taker is a consumer of results, as --json prints it.
type taker struct {
	Name string `json:"name"`
	// Behind is how many results and dead letters it has not been handed.
	Behind int        `json:"behind"`
	Had    int64      `json:"had"`
	LastAt *time.Time `json:"last_at"`
	// Error is why its last try failed, or empty.
	Error string `json:"error,omitempty"`
}

func (st *status) takers(box *inbox.Inbox, f see.Facts) {
	for _, c := range f.Consumers {
		if c.Err != nil {
			continue // a warning says it
		}
		behind, err := box.Behind(c)
		if err != nil {
			st.Warnings = append(st.Warnings, err.Error())
			continue
		}
		of := taker{Name: c.Name, Behind: behind, Had: c.Had, LastAt: c.LastAt}
		if c.Failing != nil {
			of.Error = words.Sentence(c.Failing.Error)
		}
		st.Consumers = append(st.Consumers, of)
	}
}

// shown is a consumer for people.
func (t taker) shown(d display) string {
	text := t.Name + " has had all"
	if t.Behind > 0 {
		text = fmt.Sprintf("%s is %d behind", t.Name, t.Behind)
	}
	if t.LastAt != nil {
		text += ", and was handed the last " + d.at(*t.LastAt)
	}
	return text
}
