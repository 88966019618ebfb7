// Package meter counts what sessions of the client spend.
//
// The count is in a file beside the inbox, .meter. Whoever has a [Reading] advances it: a hook, or
// whoever outlives the session. Tokens come from the session's transcript, where each message counts
// once, and are priced as they are counted. The client's own total, which it writes there when it
// ends, is the check on that, and tells what the transcript does not have: what a summary of the
// conversation took.
//
// The file has a line for each of the last sessions, with a sum, and is written in place under a lock
// on itself. It is not synced. Where a line is gone or torn the count begins anew at the beginning of
// the transcript, and comes to the same.
package meter

import (
	"slices"

	"heartbeat/internal/money/price"
)

// State is what a session has spent, as far as it was counted.
type State struct {
	Session    string
	Transcript string // the path of the session's transcript
	Read       int64  // bytes of the transcript that were counted

	// Spent is everything since the counter began. It only grows.
	Spent price.Amount
	// Marks are the last lines of a user in the transcript, in their order.
	Marks []Mark

	Model string // of the last request

	parts     []part // one more than Marks: the first is before them all
	shares    []share
	models    []string // that shares are of
	recent    []request
	summaries []summary
	stated    int64 // the last total that the transcript has
	agents    []agent
	table     *price.Table
	tableErr  error
}

// Mark is the beginning of a user's line in the transcript: a prompt, or what a hook
// or a task said in its place.
type Mark struct {
	Offset int64 // of the line, in bytes
	At     int64 // when it came to be, in milliseconds since 1970, 0 if it does not say
	// Before is what was spent before it.
	Before price.Amount
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
	from int64 // offset of the mark, -1 for the first part of all
	at   int64 // its time, in milliseconds since 1970, 0 if unknown
	own  price.Amount
}

// share is what was spent on one model in one part.
type share struct {
	part  int64 // from where the part begins
	model int64 // its place among the models
	own   price.Amount
}

// request is one of the last, of the session itself or of a subagent.
type request struct {
	name     int64 // a hash of the message's id
	tokens   price.Tokens
	part     int64 // from where its part begins
	nanos    int64 // its price
	unpriced bool  // nobody knows that
	at       int64 // of a subagent's: when it was answered, in milliseconds since 1970
	model    int64 // its place among the models, -1 for one too many
}

// amount is what the request was counted with.
func (r *request) amount() (a price.Amount) {
	a = price.Amount{Nanos: r.nanos, Dollars: r.nanos > 0, Tokens: r.tokens, Requests: 1}
	if r.unpriced {
		a.Unpriced = 1
	}
	return a
}

// summary is one that the client made of the conversation.
type summary struct {
	name int64 // that its request is counted by
	part int64 // from where its part begins
	more int64 // what it cost beyond the guess, in billionths of a dollar
	told bool  // that is known, or will never be
}

// agent is the transcript of a subagent.
type agent struct{ name, read int64 }

const (
	maxMarks     = 32 // that are kept
	maxRecent    = 48 // requests that are kept: other lines of theirs may come
	maxAgents    = 512
	maxModels    = 32 // that are told apart
	maxSummaries = 32 // that are kept
)

func begun(session string) *State { return &State{Session: session, parts: []part{{from: -1}}} }

// last is the part that goes on.
func (s *State) last() *part { return &s.parts[len(s.parts)-1] }

// partFrom is the place of the part that begins at from, or of the first that is kept.
func (s *State) partFrom(from int64) int {
	i := len(s.parts) - 1
	for i > 0 && s.parts[i].from > from {
		i--
	}
	return i
}

// partAt is the part in which something happened at a time of the transcript.
func (s *State) partAt(at int64) int {
	i := len(s.parts) - 1
	for at > 0 && i > 0 && (s.parts[i].at == 0 || s.parts[i].at > at) {
		i--
	}
	return i
}

// derive brings up to date what follows from the parts.
func (s *State) derive() {
	s.Spent = price.Amount{}
	s.Marks = make([]Mark, 0, len(s.parts)-1)
	for i, p := range s.parts {
		if i > 0 {
			s.Marks = append(s.Marks, Mark{Offset: p.from, At: p.at, Before: s.Spent})
		}
		s.Spent = s.Spent.Plus(p.own)
	}
}

// forget drops what is older than anybody asks for.
func (s *State) forget() {
	drop := max(0, len(s.parts)-1-maxMarks)
	for _, p := range s.parts[:drop] {
		s.parts[drop].own = p.own.Plus(s.parts[drop].own)
	}
	s.parts = s.parts[drop:]
	s.shares = slices.DeleteFunc(s.shares, func(of share) bool { return of.part < s.parts[0].from })
}

// Models are what was spent on each model from one position of the transcript to another, as far
// as the lines of users that are kept tell; the later used first.
func (s *State) Models(from, to int64) (all []price.ByModel) {
	for i := len(s.models) - 1; i >= 0; i-- {
		of := price.ByModel{Model: s.models[i]}
		for _, share := range s.shares {
			if share.model == int64(i) && share.part >= from && share.part < to {
				of.Amount = of.Plus(share.own)
			}
		}
		if of.Requests > 0 {
			all = append(all, of)
		}
	}
	return all
}

// modelAt is the place of a model among those that are told apart, -1 for one too many.
func (s *State) modelAt(model string) int64 {
	at := slices.Index(s.models, model)
	if at < 0 && len(s.models) < maxModels {
		at = len(s.models)
		s.models = append(s.models, model)
	}
	return int64(at)
}

// book adds an amount to a part and to what was spent in it on a model.
func (s *State) book(a price.Amount, in int, model int64) {
	p := &s.parts[in]
	p.own = p.own.Plus(a)
	at := slices.IndexFunc(s.shares, func(of share) bool { return of.part == p.from && of.model == model })
	switch {
	case at >= 0:
		s.shares[at].own = s.shares[at].own.Plus(a)
	case model >= 0:
		s.shares = append(s.shares, share{p.from, model, a})
	}
}

// takeUp moves to the part that has just begun what subagents were answered since: their
// transcripts may be counted before the line with which it begins.
func (s *State) takeUp() {
	last := len(s.parts) - 1
	for i := range s.recent {
		r := &s.recent[i]
		if r.at == 0 || s.parts[last].at == 0 || r.at < s.parts[last].at || r.part == s.parts[last].from {
			continue
		}
		s.book(price.Amount{}.Minus(r.amount()), s.partFrom(r.part), r.model)
		s.book(r.amount(), last, r.model)
		r.part = s.parts[last].from
	}
}
