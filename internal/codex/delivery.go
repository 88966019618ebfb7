package codex

import (
	"cmp"
	"os"
	"time"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// Delivery is a text that a Stop hook handed over.
type Delivery handed.Delivery

// reading follows the lines of a rollout since a delivery.
type reading struct {
	d       Delivery
	open    bool // the text was handed over and not yet answered
	turns   int  // how often the text was answered
	shown   bool // the text was seen since the delivery
	another bool // since the delivery something else was asked and not yet answered
}

func (r *reading) add(l line, at int64) {
	since := at >= r.d.Size
	switch {
	case l.hands(r.d.Text):
		r.open, r.shown, r.another = true, r.shown || since, false
	case l.isPrompt(), l.hookPrompt() != "":
		r.open, r.another = false, since
	case l.is("turn_aborted"), l.is("task_started"):
		r.open = false // what the model writes now, such as a summary, is no answer
	case l.isAnswer():
		if r.open {
			r.turns++
		}
		r.open, r.another = false, false
	}
}

// answers reports whether a line is the answer to this delivery of the text.
func (r *reading) answers(l line) bool {
	return r.open && r.turns+1 >= r.d.Times && l.isAnswer()
}

func (d Delivery) each(f func(r *reading, l line, at int64)) error {
	r := &reading{d: d}
	return handed.Delivery(d).Each(func(raw []byte, at int64) {
		l := lineOf(raw)
		f(r, l, at)
		r.add(l, at)
	})
}

// Answered reports whether the rollout shows an answer after the text. False may become true.
func (d Delivery) Answered() bool {
	answered := false
	err := d.each(func(r *reading, l line, _ int64) { answered = answered || r.answers(l) })
	return err == nil && answered
}

// NextTurn reports whether the model had the text when it next answered.
func (d Delivery) NextTurn() handed.Turn {
	turn := handed.Unknown
	err := d.each(func(r *reading, l line, _ int64) {
		switch {
		case turn != handed.Unknown:
		case r.answers(l):
			turn = handed.WithText
		case r.another && !r.shown && l.isAnswer():
			turn = handed.WithoutText
		}
	})
	if err != nil {
		return handed.Unknown
	}
	return turn
}

// Missed reports whether the rollout proves that the text never reached the model: another turn began in the same process
// without the text before it. If the text is there, a later turn sends it to the model.
func (d Delivery) Missed() bool {
	shown, wentOn := false, false
	err := d.each(func(r *reading, l line, at int64) {
		shown = shown || l.hands(d.Text) && at >= d.Size
		wentOn = wentOn || !shown && at >= d.Size && l.begins(d.PromptID)
	})
	return err == nil && !shown && wentOn
}

// Finished reports whether the rollout shows that the text's turn ended in order: an answer, and then the end of the
// turn, after its Stop hooks. The end of a turn repeats the last text, even one from before an error.
func (d Delivery) Finished() (reply string, finished bool) {
	begun, over := false, false
	err := d.each(func(r *reading, l line, _ int64) {
		switch {
		case over:
		case r.answers(l), begun && l.isAnswer():
			begun = true
			reply = cmp.Or(l.reply(), reply)
		case begun && (l.isPrompt() || l.is("turn_aborted") || l.is("task_started")):
			over = true
		case l.is("task_complete"):
			over, finished = begun, begun && reply != "" && l.Get("error") == ""
		}
	})
	return reply, err == nil && finished
}

// Silent returns false, because the client names no earlier reply.
func (d Delivery) Silent() bool { return false }

// Failed reports whether the rollout shows that an API error ended the text's turn, when, and under the name that
// [failureOf] gives the error. The client reports API errors to no hook.
func (d Delivery) Failed() (at time.Time, name, message string, failed bool) {
	open := false
	err := d.each(func(_ *reading, l line, offset int64) {
		switch {
		case l.hands(d.Text) && offset >= d.Size:
			open, failed = true, false
		case l.isPrompt(), l.is("turn_aborted"):
			open = false
		case open && l.is("task_complete"):
			name, message, failed = l.failure()
			at, _ = time.Parse(time.RFC3339, l.stamp) // zero if there is none
			open = false
		}
	})
	return at, name, message, err == nil && failed
}

const lately = time.Minute // how long after an error the time of day in its message still lies ahead

// LastFailed reports whether the last turn has just ended in an API error, as [Delivery.Failed] does for a text's turn.
// It reads only the last 256 KiB.
func LastFailed(path string) (name, message string, failed bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", "", false
	}
	stamp := ""
	err = handed.Back(path, 0, info.Size(), func(raw []byte) {
		if l := lineOf(raw); l.is("task_started") || l.is("task_complete") {
			name, message, failed = l.failure()
			stamp = l.stamp
		}
	})
	at, _ := time.Parse(time.RFC3339, stamp) // long ago if there is none
	return name, message, err == nil && failed && time.Since(at) < lately
}

// failure returns the error in a line that ends a turn.
func (l line) failure() (name, message string, failed bool) {
	wrong := l.Get("error")
	if wrong == "" || wrong == "null" {
		return "", "", false
	}
	return failureOf(wrong.Get("codex_error_info")), wrong.Get("message").Text(), true
}

// failureOf returns Claude Code's name for an error, which is a word, or an object with the status of the response.
func failureOf(info flat.Value) string {
	key := info.Text()
	if !info.IsString() {
		flat.Each([]byte(info), func(_, value []byte) { key = string(flat.Value(value).Get("http_status_code")) })
	}
	switch key {
	case "bad_request", "400":
		return "invalid_request"
	case "unauthorized", "401", "403":
		return "authentication_failed"
	case "402":
		return "billing_error"
	case "404":
		return "model_not_found"
	case "usage_limit_exceeded", "429":
		return "rate_limit"
	case "server_overloaded", "503", "529":
		return "overloaded"
	}
	if key == "internal_server_error" || len(key) == len("500") && key[0] == '5' {
		return "server_error"
	}
	return "unknown"
}
