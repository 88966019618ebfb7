package babysitter

import (
	"encoding/json"
	"strings"
	"time"
)

// text is a member that ought to be a string. Process code decides what is in it, so
// anything else is kept as the JSON that it is.
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

// texts is an array of these, and empty where it is something else.
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

// stamp is a time as JavaScript writes it, and zero where it is something else.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	if t, err := time.Parse(time.RFC3339, strings.Trim(string(b), `"`)); err == nil {
		s.Time = t
	}
	return nil
}

// instant is a number of milliseconds since 1970, and zero where it is something else.
type instant struct{ time.Time }

func (i *instant) UnmarshalJSON(b []byte) error {
	var ms float64
	const century = 1e14 // of milliseconds, and some: far beyond, int64 ends
	if json.Unmarshal(b, &ms) == nil && ms > 0 && ms < century {
		i.Time = time.UnixMilli(int64(ms))
	}
	return nil
}
