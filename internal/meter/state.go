// Package meter counts what one session of the client spends.
//
// The count is in a file beside the inbox, .meter-SESSION. Whoever has a [Reading]
// advances it: the client's status line, a hook, or whoever outlives the session.
// Tokens come from the session's transcript, where each message counts once; dollars
// are the growth of the client's own total. A total says nothing of single requests,
// so its growth is given to those that it is new for.
//
// The file has two slots that are written in turn, under a lock on the file itself, so
// that one is whole whatever happens to a writer. It is not synced: a power loss may
// leave an older state, or none. Then the count begins anew, with another [State.ID],
// at the beginning of the transcript.
package meter

import (
	"time"

	"heartbeat/internal/price"
)

// State is what a session has spent, as far as it was counted.
type State struct {
	ID         string // names this run of the counter: one that began anew has another
	Session    string
	Transcript string // the path of the session's transcript
	Read       int64  // bytes of the transcript that were counted

	// Spent is everything since the counter began. It only grows. Dollars are known
	// from the first total on.
	Spent price.Amount
	// Marks are the last lines of a user in the transcript, in their order.
	Marks []Mark
	// Divided says that dollars of what was spent since the last mark, or since the
	// beginning, came in one sum with others, and were divided by tokens.
	Divided bool

	// Client names the process whose total was read last, Total is that total in
	// billionths of a dollar, and Resumed is the total with which the client began,
	// as far as the transcript tells. All are zero where nobody has read a total.
	Client         string
	Total, Resumed int64

	Model          string    // of the last request
	ContextPercent float64   // of the model's context, negative if unknown
	At             time.Time // of the last reading with a total

	parts   []part // one more than Marks: the first is before them all
	settled int    // how many of the first parts stay as they are
	held    []held
	loose   int64 // growth of the total that belongs to the next mark
	recent  []request
	main    int64 // requests of the main transcript
	clients []client
	stated  int64 // the last total that the transcript has
	agents  []agent
	behind  bool // the transcript has more
}

// Mark is the beginning of a user's line in the transcript: a prompt, or what a hook
// or a task said in its place.
type Mark struct {
	Offset int64 // of the line, in bytes
	At     int64 // when it came to be, in milliseconds since 1970, 0 if it does not say
	// Before is what was spent before it.
	Before price.Amount
	// Divided is as [State.Divided], for what lies between the mark before and this one.
	Divided bool
	// Known says that Before is final. It is not as long as the client, which says
	// totals, has not said one with the last request before the mark.
	Known bool
}

// Mark is the first line of a user at or behind a position in the transcript. ok is
// false if none was read: then everything so far was spent before it.
func (s *State) Mark(position int64) (m Mark, ok bool) {
	for _, m := range s.Marks {
		if m.Offset >= position {
			return m, true
		}
	}
	return Mark{}, false
}

// part is what was spent from one mark to the next.
type part struct {
	from    int64 // offset of the mark, -1 for the first part of all
	at      int64 // its time, in milliseconds since 1970, 0 if unknown
	own     price.Amount
	weight  int64 // of requests that have no dollars, and are not among the recent ones
	divided bool
}

// request is one of the last, of the session itself or of a subagent.
type request struct {
	name   int64 // a hash of the message's id
	tokens price.Tokens
	part   int64 // from where its part begins
	number int64 // how many requests of the main transcript there were with it
	priced bool
}

// held is growth of the client's total that is not given to requests yet.
type held struct {
	nanos int64
	upTo  int64 // the number of the last request that it is for
}

// client is a process whose totals are known.
type client struct {
	name  string
	total int64
	began int64 // the total that it began with
	// base is how many requests of the main transcript there were before it, -1 if
	// that is unknown.
	base int64
	// fell is a total below the last one that was read, -1 if the last was not.
	fell int64
	// off counts how often the client's count of requests said otherwise than its
	// usage.
	off int64
}

// agent is the transcript of a subagent.
type agent struct{ name, read int64 }

const (
	maxMarks   = 32   // that are kept when they are final
	maxOpen    = 1024 // that are kept at all
	maxRecent  = 8    // requests that are kept when they have dollars
	maxWaiting = 256  // requests that are kept at all
	maxHeld    = 8
	maxClients = 4
	maxAgents  = 512
	// unsaid is how many marks later the client would have said a total for what
	// is before a mark, if it said any.
	unsaid = 8
)

func begun(session, id string) *State {
	return &State{ID: id, Session: session, ContextPercent: -1, parts: []part{{from: -1}}}
}

// last is the part that goes on.
func (s *State) last() *part { return &s.parts[len(s.parts)-1] }

// partFrom is the place of the part that begins at from, or of the first that may
// still change where that one may not.
func (s *State) partFrom(from int64) int {
	for i := len(s.parts) - 1; i > s.settled; i-- {
		if s.parts[i].from <= from {
			return i
		}
	}
	return min(s.settled, len(s.parts)-1)
}

// partAt is the part in which something happened at a time of the transcript.
func (s *State) partAt(at int64) int {
	i := len(s.parts) - 1
	for at > 0 && i > s.settled && (s.parts[i].at == 0 || s.parts[i].at > at) {
		i--
	}
	return i
}

// derive brings up to date what follows from the parts.
func (s *State) derive() {
	s.settle()
	sum, told := price.Amount{}, s.Spent.Dollars
	s.Marks = make([]Mark, 0, len(s.parts)-1)
	for i, p := range s.parts {
		if i > 0 {
			sum.Dollars = told
			s.Marks = append(s.Marks, Mark{
				Offset: p.from, At: p.at, Before: sum, Divided: s.parts[i-1].divided,
				Known: i <= s.settled || !told || len(s.parts)-i > unsaid,
			})
		}
		sum = sum.Plus(p.own)
	}
	for _, h := range s.held {
		sum.Nanos += h.nanos
	}
	sum.Nanos += s.loose
	sum.Dollars = told
	s.Spent, s.Divided = sum, s.last().divided
	if len(s.clients) > 0 {
		s.Client, s.Total, s.Resumed = s.clients[0].name, s.clients[0].total, s.clients[0].began
	}
}

// settle finds how many parts have all their dollars.
func (s *State) settle() {
	upTo := len(s.parts) - 1
	if !s.Spent.Dollars {
		upTo = 0
	}
	for i, p := range s.parts[:upTo] {
		if p.weight > 0 {
			upTo = i
			break
		}
	}
	for _, r := range s.recent {
		if !r.priced {
			upTo = min(upTo, s.partFrom(r.part))
		}
	}
	s.settled = max(s.settled, upTo)
}

// forget drops what is older than anybody asks for.
func (s *State) forget() {
	for drop := len(s.parts) - 1 - maxMarks; drop > 0 && (s.settled > 1 || len(s.parts)-1 > maxOpen); drop-- {
		first := s.parts[0]
		s.parts = s.parts[1:]
		s.parts[0].own = first.own.Plus(s.parts[0].own)
		s.parts[0].weight = addWeight(first.weight, s.parts[0].weight)
		s.settled = max(0, s.settled-1)
	}
	kept, priced := s.recent[:0], 0
	for _, r := range s.recent {
		if r.priced {
			priced++
		}
	}
	drop := max(0, priced-maxRecent)
	for _, r := range s.recent {
		if r.priced && drop > 0 {
			drop--
			continue
		}
		kept = append(kept, r)
	}
	for len(kept) > maxWaiting {
		if r := kept[0]; !r.priced {
			p := &s.parts[s.partFrom(r.part)]
			p.weight = addWeight(p.weight, r.tokens.Weight())
		}
		kept = kept[1:]
	}
	s.recent = kept
	for len(s.held) > maxHeld {
		s.held[1].nanos += s.held[0].nanos
		s.held = s.held[1:]
	}
}
