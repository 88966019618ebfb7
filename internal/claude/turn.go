package claude

import (
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// reading follows the lines of a transcript since a delivery. The client writes them in order but about a tenth of a
// second late, so the first ones may still belong to the turn before. That turn ends with the line of the reply before
// the delivering Stop.
type reading struct {
	d      Delivery
	behind bool // set after the line of that reply; reply is its message id
	reply  string
	own    bool // a line of the prompt that the Stop ended was seen
	// open is set while the text was handed over and not yet answered. turns counts the answers.
	open  bool
	turns int
	shown bool // the text was seen since the delivery
}

func (d Delivery) reading() *reading {
	r := &reading{d: d}
	if !d.Fresh || d.Reply == "" {
		return r
	}
	last := new(flat.Members) // the last answer or prompt before the delivery
	err := handed.Back(d.Path, 0, d.Size, func(line []byte) {
		if l := flat.Begun(line); isAnswer(l) || isPrompt(l) {
			last = l
		}
	})
	if err == nil && TranscriptSize(d.Path) >= d.Size && isAnswer(last) && isReply(last, d.Reply) {
		r.behind, r.reply = true, last.Value("message").Get("id").Text()
	}
	return r
}

func (r *reading) add(l *flat.Members, at int64) {
	since := at >= r.d.Size
	switch {
	case hands(l, r.d.Text):
		r.open, r.shown = true, r.shown || since
	case isPrompt(l):
		r.open = false
		if r.isOwn(l) {
			r.behind = false // the lines before belong to another prompt
		}
	case isAnswer(l):
		if r.open {
			r.open = false
			r.turns++
		}
		if since && !r.behind && r.d.Fresh && isReply(l, r.d.Reply) {
			r.behind, r.reply = true, l.Value("message").Get("id").Text()
		}
	}
	r.own = r.own || r.isOwn(l)
}

// isOwn reports whether a line belongs to the prompt that the delivering Stop ended.
func (r *reading) isOwn(l *flat.Members) bool {
	return r.d.PromptID != "" && l.String("promptId") == r.d.PromptID
}

// answers reports whether a line answers this delivery of the text, and not an earlier one.
func (r *reading) answers(l *flat.Members) bool {
	return r.open && r.turns+1 >= r.d.Times && (isAnswer(l) || isSilence(l))
}

// wentOn reports whether a line shows that the session got past the delivering Stop and all its hooks: an answer, a
// prompt, or the summary of the hooks. Another hook's output proves nothing, since it may precede the text.
func (r *reading) wentOn(l *flat.Members, at int64) bool {
	switch {
	case at < r.d.Size:
		return false
	case isPrompt(l) && r.own && l.String("promptId") != "" && !r.isOwn(l):
		return true
	case !r.behind:
		return false
	case isAnswer(l):
		return r.isAnother(l)
	}
	return isPrompt(l) && !r.isOwn(l) || isSummary(l) || isOverride(l)
}

// isAnother reports whether an answer is a new one, and not one more line of the reply before the Stop.
func (r *reading) isAnother(answer *flat.Members) bool {
	id := answer.Value("message").Get("id").Text()
	return id == "" || id != r.reply
}

// Answered reports whether the transcript shows an answer after the text. The client writes about a tenth of a second
// late, so false may become true.
//
// A line with the text is not enough: the client writes it when the hook that printed the text ends, while other hooks
// of the same Stop may still run. Nor is just any answer: the one before the Stop may be written after the hook has
// started. If the transcript is not in the client's format, its growth counts as an answer.
func (d Delivery) Answered() bool {
	r := d.reading()
	answered, foreign, known := false, false, false
	err := d.each(func(l *flat.Members, at int64) {
		if !l.Exists("uuid") {
			bookkeeping := l.Exists("sessionId") // of the client's own, which may stand anywhere
			known, foreign = known || bookkeeping, foreign || !bookkeeping
			return
		}
		known = true
		answered = answered || r.answers(l)
		r.add(l, at)
	})
	return err == nil && (answered || foreign && !known)
}

// Silent reports whether the model's last answer was empty, so that a Stop names an earlier reply.
func (d Delivery) Silent() bool {
	silent := false
	err := d.each(func(l *flat.Members, _ int64) {
		silent = isSilence(l) || silent && !isAnswer(l) && !isPrompt(l) && !hands(l, d.Text)
	})
	return err == nil && silent
}

// NextTurn reports whether the model had the text when it next answered. The client writes the texts of a Stop's hooks
// before it asks the model.
func (d Delivery) NextTurn() handed.Turn {
	r, turn := d.reading(), handed.Unknown
	err := d.each(func(l *flat.Members, at int64) {
		switch {
		case turn != handed.Unknown || !l.Exists("uuid"):
			return
		case r.answers(l):
			turn = handed.WithText
		case at >= d.Size && r.behind && !r.open && isAnswer(l) && r.isAnother(l):
			turn = handed.WithoutText
		}
		r.add(l, at)
	})
	if err != nil {
		return handed.Unknown
	}
	return turn
}

// Missed reports whether the transcript proves that the text never reached the model: the session continued without it,
// or the client ended the turn instead, by itself or by another hook's decision.
//
// A missing text alone proves nothing, because a killed client loses its last lines. But lines are written in order:
// the text would precede any line from after the delivery.
//
// If the text is there, a later turn sends it to the model, even a turn of another process that resumed the session.
func (d Delivery) Missed() bool {
	end := d.End
	d.End = 0
	r := d.reading()
	reached, overridden, wentOn := false, false, false
	err := d.each(func(l *flat.Members, at int64) {
		if end != 0 && at >= end {
			reached = reached || r.shown && isTurn(l)
			return
		}
		switch {
		case hands(l, d.Text):
			reached, overridden = false, isSummary(l) && summaryOf(l).Ended
		case r.shown:
			reached = reached || isTurn(l)
			overridden = overridden || isOverride(l)
		default:
			wentOn = wentOn || r.wentOn(l, at)
		}
		r.add(l, at)
	})
	switch {
	case err != nil:
		return false
	case r.shown:
		return overridden && !reached
	}
	return wentOn
}
