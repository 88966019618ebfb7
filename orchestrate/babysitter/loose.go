package babysitter

import (
	"encoding/json"
	"strings"
	"time"
)

// text is a member that should be a string. Process code decides what it is, so any other
// value is kept as JSON.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) != nil {
		*t = text(b)
		return nil
	}
	if s != nil {
		*t = text(*s)
	}
	return nil
}

// texts is an array of them; empty for any other value.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var all []text
	if json.Unmarshal(b, &all) == nil {
		for _, one := range all {
			*t = append(*t, string(one))
		}
	}
	return nil
}

// stamp is a time as JavaScript writes it; zero for any other value.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	if t, err := time.Parse(time.RFC3339, strings.Trim(string(b), `"`)); err == nil {
		s.Time = t
	}
	return nil
}

// instant is a number of milliseconds since 1970; zero for any other value.
type instant struct{ time.Time }

func (i *instant) UnmarshalJSON(b []byte) error {
	var ms float64
	const century = 1e14 // in milliseconds, and a few: int64 overflows far beyond
	if json.Unmarshal(b, &ms) == nil && ms > 0 && ms < century {
		i.Time = time.UnixMilli(int64(ms))
	}
	return nil
}
