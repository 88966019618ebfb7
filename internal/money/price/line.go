package price

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"heartbeat/internal/flat"
)

// Charged names the delivery of an entry that a price is charged to.
type Charged struct {
	// EntryID is empty outside of entries. FirstSeq is the commit of the entry's first delivery. No other entry has it,
	// not even one with the same text at the same place in an inbox that was replaced. DeliveredSeq is the commit of
	// this delivery.
	EntryID, ID            string
	Start                  int64
	FirstSeq, DeliveredSeq int64
	Attempt                int
}

// Outside reports whether the price belongs to no entry.
func (c Charged) Outside() bool { return c.EntryID == "" }

// Line is a line of .costs.jsonl: one charge. An entry's cost is the sum of its lines, none of which is negative.
type Line struct {
	At time.Time
	Charged
	SessionID string
	Price
	Models []ByModel // the share of each model, nil if there was only one
	Guess  bool      // a part is a guess: the price of a summary
	Own    bool      // the client's total is not comparable: a person's own prices hold, or the client knows none
	End    int64     // how far the session's transcript was charged then, in bytes
}

func (l *Line) members(to flat.Codec) error {
	to.Time("at", &l.At)
	to.Text("entry_id", &l.EntryID)
	to.Text("id", &l.ID)
	to.NonZero("start_offset", &l.Start)
	to.NonZero("first_seq", &l.FirstSeq)
	to.NonZero("delivered_seq", &l.DeliveredSeq)
	to.Count("attempt", &l.Attempt)
	outside := l.Outside()
	to.Flag("outside", &outside)
	to.Text("session_id", &l.SessionID)
	err := l.Price.Members(to)
	models := "" // a line for each of the few models, with its amount
	for _, of := range l.Models {
		models += of.Model + "\t" + of.Short() + "\n"
	}
	if to.Text("models", &models); to.Reads() {
		l.Models = nil
		for line := range strings.Lines(models) {
			model, amount, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if a, err := Short(amount); err == nil && a.Requests > 0 { // other lines are skipped
				l.Models = append(l.Models, ByModel{model, a})
			}
		}
	}
	to.Flag("guess", &l.Guess)
	to.Flag("own_prices", &l.Own)
	to.NonZero("transcript_end", &l.End)
	return err
}

// JSON returns the line without its newline.
func (l *Line) JSON() []byte {
	var o flat.Object
	_ = l.members(flat.To(&o)) // only reading can fail
	return o.End()
}

// ParseLine reads a line of .costs.jsonl.
func ParseLine(line []byte) (l Line, err error) {
	m, err := flat.Parse(line)
	if err != nil {
		return l, err
	}
	switch err = cmp.Or(l.members(flat.From(m)), m.Err()); {
	case err != nil:
	case l.At.IsZero():
		err = errors.New("it has no member at")
	case l.Nanos < 0 || l.ClientNanos < 0 || l.End < 0:
		err = errors.New("its member cost_usd, client_usd or transcript_end is negative")
	}
	return l, err
}
