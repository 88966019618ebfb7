// Package meter counts what sessions of the client spend, from their transcripts.
//
// Each request is priced once, by its id, from its own usage. Nothing is kept: who charges says where in
// the transcript what is not charged yet begins, and the rest is read. The client's own total, which it writes
// there when it ends, is the check on that.
package meter

import (
	"slices"
	"strings"

	"heartbeat/internal/money/price"
)

// Range is of which transcript something is to be counted, from where on.
type Range struct {
	Transcript string
	From       int64
	// Since is when From was, in milliseconds since 1970: what subagents asked for before counts elsewhere.
	Since int64
	// Stated is the client's own total by then.
	Stated int64
	// Tool is the id of a use of a tool, and Agent names the subagent that asked for it, empty for the session
	// itself: was that answer counted?
	Tool, Agent string
}

// Count is what was spent from there on.
type Count struct {
	// Parts begin with the lines of users in the transcript, but for the first, which begins where the
	// range does.
	Parts   []Part
	Model   string // of the last request
	Read    int64  // where the transcript ended
	HasTool bool   // the answer that asked for Range.Tool is there
	// Largest is the most that a request took, in dollars and in tokens, and Requests are how many there were.
	Largest  price.Amount
	Requests int
}

// Part is what was spent from one line of a user to the next: a prompt, or what a hook or a task said in its
// place.
type Part struct {
	From   int64 // of the line, in bytes
	User   bool  // there is such a line: the first part may have none
	At     int64 // when it came to be, in milliseconds since 1970, 0 if it does not say
	Spent  price.Amount
	Models []price.ByModel // the later used first
	Guess  bool            // a summary was made, whose price is a guess
	Stated int64           // the client's own total at the end
}

// Plus is both parts, one behind the other.
func (p Part) Plus(next Part) Part {
	p.Spent, p.Guess, p.Stated = p.Spent.Plus(next.Spent), p.Guess || next.Guess, next.Stated
	p.Models = slices.Clone(p.Models)
	for _, of := range slices.Backward(next.Models) {
		p.Models = of.In(p.Models)
	}
	return p
}

// request is one to the model. Its lines say what it took so far.
type request struct {
	part  int // -1 before the range
	model string
	usage price.Usage
}

// counter reads the transcripts of a range.
type counter struct {
	Range
	Count
	total    int64 // the client's, at last
	requests map[string]*request
	order    []*request
	summary  *request // the last one
}

// Scan counts a range. A transcript that cannot be read is an error beside a count of the rest, and so is a
// table of prices that cannot.
func Scan(r Range) (*Count, error) {
	c := &counter{Range: r, total: r.Stated, requests: map[string]*request{}}
	c.Read = r.From
	c.Parts = []Part{{From: r.From, At: r.Since, Stated: r.Stated}}
	err := c.follow(r.Transcript, &c.Read, r.Agent == "", c.line)
	if threadOf(r.Transcript) != "" {
		c.rollouts()
	} else {
		c.agents()
	}
	if errTable := c.price(); err == nil {
		err = errTable
	}
	return &c.Count, err
}

// in is the part of a line at a position.
func (c *counter) in(at int64) int {
	if at < c.From {
		return -1
	}
	return len(c.Parts) - 1
}

// begin begins a part with a line at a position: the model was given something.
func (c *counter) begin(at, when int64) {
	switch {
	case at > c.From:
		c.Parts = append(c.Parts, Part{From: at, User: true, At: when, Stated: c.total})
	case at == c.From:
		c.Parts[0].User, c.Parts[0].At = true, when
	}
}

// partAt is the part in which something happened at a time of the transcript.
func (c *counter) partAt(when int64) int {
	if c.From > 0 && (c.Since == 0 || when < c.Since) {
		return -1
	}
	i := len(c.Parts) - 1
	for when > 0 && i > 0 && (c.Parts[i].At == 0 || c.Parts[i].At > when) {
		i--
	}
	return i
}

// ask notes a request of that name, or what another line of it has more: the last line of a message has its
// final usage.
func (c *counter) ask(name, model string, u price.Usage, part int) *request {
	r := c.requests[name]
	if r == nil {
		r = &request{part: part, model: model}
		c.requests[name], c.order = r, append(c.order, r)
	}
	r.usage = r.usage.Most(u)
	return r
}

// price gives each request its price.
func (c *counter) price() error {
	if len(c.order) == 0 {
		return nil
	}
	table, err := Prices()
	for _, r := range c.order {
		if r.part < 0 {
			continue
		}
		a := price.Amount{Tokens: r.usage.Tokens, Requests: 1}
		if rates, _ := table.Of(r.model); rates != nil {
			a.Nanos, a.Dollars = rates.Of(r.usage), true
		} else if a.Tokens.Sum() > 0 {
			a.Unpriced = 1
		}
		p := &c.Parts[r.part]
		p.Spent, p.Models = p.Spent.Plus(a), price.ByModel{Model: r.model, Amount: a}.In(p.Models)
		c.Requests++
		if c.Largest.Nanos = max(c.Largest.Nanos, a.Nanos); a.Tokens.Sum() > c.Largest.Tokens.Sum() {
			c.Largest.Tokens = a.Tokens
		}
	}
	return err
}

// state takes what the client writes into the transcript when it ends: its total, from which it goes
// on when the session is resumed.
func (c *counter) state(number string, part int) {
	total, err := price.DollarsOf(number)
	if err != nil || total < 0 {
		return
	}
	since := c.total
	if total < since {
		since = 0 // it did not take up the old total
	}
	c.total = total
	if part < 0 {
		c.Parts[0].Stated = total
	} else {
		p := &c.Parts[part]
		p.Spent.Said, p.Stated = p.Spent.Said+total-since, total
	}
}

// clip bounds a name that a file gives, to one line.
func clip(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name[:min(len(name), 100)], ""), "\n", " ")
}
