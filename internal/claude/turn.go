package claude

import "github.com/tidwall/gjson"

// Turn is what a transcript tells of the turn that came behind a delivery.
type Turn int

// The turns. Unknown may become another one while the client still writes.
const (
	Unknown     Turn = iota
	WithText         // the model answered, and had the text
	WithoutText      // the model answered, and did not have it
)

// reading follows the lines of a transcript since a delivery. The client writes
// them in their order, but a tenth of a second late: the first ones may be of the
// turn before. What tells them apart is the line of the reply by which the
// delivering Stop came.
type reading struct {
	d Delivery
	// behind says that the lines stand behind that reply, whose message is reply.
	behind bool
	reply  string
	own    bool // a line of the prompt that the Stop was in was seen
	// open says that the text was handed over, and nothing was answered since;
	// turns counts those that were.
	open  bool
	turns int
	shown bool // since the delivery
}

func (d Delivery) reading() *reading {
	r := &reading{d: d}
	if d.Fresh && d.Reply != "" {
		if last, found := d.lastAnswer(); found && says(last, d.Reply) {
			r.behind, r.reply = true, last.Get("message.id").Str
		}
	}
	return r
}

// take follows a line once it was judged.
func (r *reading) take(l gjson.Result, at int64) {
	since := at >= r.d.Size
	switch {
	case hands(l, r.d.Text):
		r.open, r.shown = true, r.shown || since
	case isPrompt(l):
		r.open = false
		if r.isOwn(l) {
			r.behind = false // what came before is of another prompt
		}
	case isAnswer(l):
		if r.open {
			r.open = false
			r.turns++
		}
		if since && !r.behind && r.d.Fresh && says(l, r.d.Reply) {
			r.behind, r.reply = true, l.Get("message.id").Str
		}
	}
	r.own = r.own || r.isOwn(l)
}

// isOwn reports whether a line is of the prompt that the delivering Stop was in.
func (r *reading) isOwn(l gjson.Result) bool {
	return r.d.PromptID != "" && l.Get("promptId").Str == r.d.PromptID
}

// answers reports whether a line answers the text, which was handed over as often
// as it was.
func (r *reading) answers(l gjson.Result) bool {
	return r.open && r.turns+1 >= r.d.Times && isAnswer(l)
}

// wentOn reports whether a line shows that the session went on behind the Stop
// that delivered, and its hooks: an answer, a prompt, the summary of the hooks. What
// another hook of the same Stop said may come before the text.
func (r *reading) wentOn(l gjson.Result, at int64) bool {
	switch {
	case at < r.d.Size:
		return false
	case isPrompt(l) && r.own && l.Get("promptId").Str != "" && !r.isOwn(l):
		return true
	case !r.behind:
		return false
	case isAnswer(l):
		return r.isAnother(l)
	}
	return isPrompt(l) && !r.isOwn(l) || isSummary(l) || isOverride(l)
}

// isAnother tells an answer from a further line of the reply that the Stop came by.
func (r *reading) isAnother(answer gjson.Result) bool {
	id := answer.Get("message.id").Str
	return id == "" || id != r.reply
}

// Answered reports whether the transcript shows an answer that came after the
// text. The client writes its transcript about a tenth of a second late, so a
// false may turn true.
//
// A line with the text is not enough: it is written as soon as the hook that
// printed it ends, while another hook of the same Stop may still be running.
// Nor is any answer: the one before the Stop may be written later than the
// hook starts. A transcript that is not in the client's format shows by growing
// that the session went on.
func (d Delivery) Answered() bool {
	r := d.reading()
	answered, foreign, known := false, 0, 0
	err := d.each(func(l gjson.Result, at int64) {
		if !l.Get("uuid").Exists() {
			// The client's bookkeeping has no uuid either, and lands anywhere.
			if !l.Get("sessionId").Exists() {
				foreign++
			} else {
				known++
			}
			return
		}
		known++
		answered = answered || r.answers(l)
		r.take(l, at)
	})
	return err == nil && (answered || foreign > 0 && known == 0)
}

// NextTurn tells whether the model had the text when it answered next. The client
// writes what the hooks of a Stop said before it asks the model.
func (d Delivery) NextTurn() Turn {
	r, turn := d.reading(), Unknown
	err := d.each(func(l gjson.Result, at int64) {
		switch {
		case turn != Unknown || !l.Get("uuid").Exists():
			return
		case r.answers(l):
			turn = WithText
		case at >= d.Size && r.behind && !r.open && isAnswer(l) && r.isAnother(l):
			turn = WithoutText
		}
		r.take(l, at)
	})
	if err != nil {
		return Unknown
	}
	return turn
}

// Missed reports whether the transcript proves that the text never reached the
// model: the session went on without it, or ended the turn in its place.
//
// That the text is not there proves nothing by itself: a client that is killed
// takes the last lines with it. The lines are written in order, though, so one
// that came after the delivery would stand behind the text.
//
// Where the text is there, a turn of the process that resumed the session takes it
// along to the model like any other.
func (d Delivery) Missed() bool {
	end := d.End
	d.End = 0
	r := d.reading()
	reached, overridden, wentOn := false, false, false
	err := d.each(func(l gjson.Result, at int64) {
		if end != 0 && at >= end {
			reached = reached || r.shown && isTurn(l)
			return
		}
		switch {
		case hands(l, d.Text):
			reached, overridden = false, false
		case r.shown:
			reached = reached || isTurn(l)
			overridden = overridden || isOverride(l)
		default:
			wentOn = wentOn || r.wentOn(l, at)
		}
		r.take(l, at)
	})
	switch {
	case err != nil:
		return false
	case r.shown:
		return overridden && !reached
	}
	return wentOn
}
