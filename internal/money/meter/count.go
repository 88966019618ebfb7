// Package meter counts what sessions of the client spend, from their transcripts.
//
// Each request is priced once, by its id, from its own usage. The package keeps no state: the caller says where in the
// transcript the uncharged part begins, and the meter reads from there. The total that the client writes at its end
// checks the sum.
package meter

import (
	"cmp"
	"slices"
	"strings"

	"heartbeat/internal/money/price"
)

// Range is the part of a transcript to count.
type Range struct {
	Transcript string
	From       int64
	// Since is when From was reached, in milliseconds since 1970. Earlier requests of subagents count elsewhere.
	Since  int64
	Stated int64 // the client's own total at From
	Later  int64 // where a later turn begins, behind any copy; 0 if none does
	// Prompts are the entries' prompts by their ids, and where the first of each one's entries begins. If it is not empty,
	// what other prompts cost is in [Part.Other]. The count adds those, at -1.
	Prompts map[string]int64
	Today   int64 // when the day began, in milliseconds since 1970
	// Tool is the id of a tool use by the subagent Agent, or by the session itself for "". See Count.HasTool.
	Tool, Agent string
}

// Count is what was spent in a range.
type Count struct {
	// Each part begins with a line of a user, except the first, which begins where the range does.
	Parts   []Part
	Model   string // of the last request
	Read    int64  // where the transcript ended
	HasTool bool   // the answer with the use of Range.Tool was found
	missing bool   // there is no transcript
	Unsure  bool   // the transcript or the table of prices cannot be read
	// Whole says that the client's total covers exactly the range, which begins with the transcript or right behind a
	// total.
	Whole    bool
	Largest  price.Amount // the most that one request took, in dollars and in tokens
	Requests int
}

// Part is what was spent from one line of a user to the next: a prompt, or the text of a hook or a task.
type Part struct {
	From   int64 // of the line, in bytes
	User   bool  // there is such a line; the first part may have none
	At     int64 // time of the line in milliseconds since 1970, 0 if unknown
	Spent  price.Amount
	Before price.Amount    // the part of Spent from before Range.Today
	Models []price.ByModel // the last used first
	Guess  price.ByModel   // the part of Spent that is guessed: prices of summaries
	Own    bool            // the client's total is not comparable: a person's own prices hold, or the client knows none
	Stated int64           // the client's own total at the end
	Other  *Part           // was spent meanwhile on prompts of no entry, or of an earlier one; nil if nothing was
}

// Plus joins two consecutive parts.
func (p Part) Plus(next Part) Part {
	p.Spent, p.Before = p.Spent.Plus(next.Spent), p.Before.Plus(next.Before)
	p.Own, p.Stated = p.Own || next.Own, next.Stated
	p.Guess = price.ByModel{Model: cmp.Or(next.Guess.Model, p.Guess.Model), Amount: p.Guess.Plus(next.Guess.Amount)}
	p.Models = slices.Clone(p.Models)
	for _, of := range slices.Backward(next.Models) {
		p.Models = of.In(p.Models)
	}
	return p
}

// request is a request to the model. Each of its lines has what it took so far.
type request struct {
	part  int // -1 before the range
	at    int64
	model string
	usage price.Usage
	guess bool // it made a summary
	other bool // for a prompt of no entry
}

type counter struct {
	Range
	Count
	total    int64 // the client's last
	requests map[string]*request
	order    []*request
	summary  *request        // the last one
	others   map[string]bool // the uuids of lines of prompts of no entry
	kind     requestKind     // of a rollout
	met      []string        // subagents of a rollout
	reviewed bool            // a subagent reviews what the rollout's session asks for
}

// Scan counts a range. If the transcript or the table of prices cannot be read, it returns an error and counts the
// rest.
func Scan(r Range) (*Count, error) {
	c := &counter{Range: r, total: r.Stated, requests: map[string]*request{}, others: map[string]bool{}}
	c.Whole, c.Parts = r.From == 0, []Part{{From: r.From, At: r.Since, Stated: r.Stated}}
	isRollout := threadOf(r.Transcript) != ""
	if isRollout {
		c.before()
	}
	var err error
	c.Read, err = c.follow(r.Transcript, r.From, r.Agent == "", c.line)
	if isRollout {
		c.rollouts()
	} else {
		c.agents()
	}
	err = cmp.Or(err, c.price())
	c.Unsure = err != nil
	return &c.Count, err
}

// partOfLine returns the part of a line at a position, -1 before the range.
func (c *counter) partOfLine(at int64) int {
	if at < c.From {
		return -1
	}
	return len(c.Parts) - 1
}

// begin begins a part with the line at a position, which gave the model something to do.
func (c *counter) begin(at, when int64) {
	switch {
	case at > c.From:
		c.Parts = append(c.Parts, Part{From: at, User: true, At: when, Stated: c.total})
	case at == c.From:
		c.Parts[0].User, c.Parts[0].At = true, when
	}
}

// partAt returns the part of a time in the transcript, -1 before the range.
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

// addRequest notes a request, or a further line of it. The last line of a message has its final usage.
func (c *counter) addRequest(name, model string, u price.Usage, at int64, part int) *request {
	r := c.requests[name]
	if r == nil {
		r = &request{part: part, at: at, model: model}
		c.requests[name], c.order = r, append(c.order, r)
	}
	r.usage = r.usage.Most(u)
	return r
}

func (c *counter) price() error {
	if len(c.order) == 0 {
		return nil
	}
	table, err := Prices()
	for _, r := range c.order {
		if r.part < 0 {
			continue
		}
		if r.guess {
			r.model = cmp.Or(r.model, c.Model) // if the answer before it is too far back, the next one has it
		}
		p, a := &c.Parts[r.part], price.Amount{Tokens: r.usage.Tokens, Requests: 1}
		if r.other {
			p.Other = cmp.Or(p.Other, &Part{})
			p = p.Other
		}
		rates, file := table.Of(r.model)
		p.Own = p.Own || file != ""
		if rates != nil {
			a.Nanos, a.Dollars = rates.Of(r.usage), true
		} else if a.Tokens.Sum() > 0 && (r.model != "" || !r.guess) {
			a.Unpriced = 1
		}
		if r.at > 0 && r.at < c.Today {
			p.Before = p.Before.Plus(a)
		}
		p.Spent, p.Models = p.Spent.Plus(a), price.ByModel{Model: r.model, Amount: a}.In(p.Models)
		if r.guess {
			p.Guess = price.ByModel{Model: r.model, Amount: p.Guess.Plus(a)}
		}
		c.Requests++
		if c.Largest.Nanos = max(c.Largest.Nanos, a.Nanos); a.Tokens.Sum() > c.Largest.Tokens.Sum() {
			c.Largest.Tokens = a.Tokens
		}
	}
	return err
}

// state notes the total that the client writes when it ends, with which a resumed session begins. unknown says that the
// client did not know some model's price.
func (c *counter) state(number string, unknown bool, part int) {
	total, err := price.DollarsOf(number)
	if err != nil || total < 0 {
		return
	}
	since := c.total
	if total < since {
		since = 0 // it began anew
	}
	c.total = total
	if part < 0 {
		c.Parts[0].Stated, c.Whole = total, true
	} else {
		p := &c.Parts[part]
		p.Spent.ClientNanos, p.Stated, p.Own = p.Spent.ClientNanos+total-since, total, p.Own || unknown
	}
}

// clip cuts a name from a file to one short line.
func clip(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name[:min(len(name), 100)], ""), "\n", " ")
}
