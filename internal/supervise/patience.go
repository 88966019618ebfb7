package supervise

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/words"
)

const (
	// maxHold is the longest back-off waited out without [Options.Patience]. After a longer one
	// whoever started the launcher must come back.
	maxHold = 10 * time.Minute
	// longWait is the shortest wait worth announcing.
	longWait = 10 * time.Second
)

// patience records how this launcher has waited so far.
type patience struct {
	since    time.Time // of the last answer; its clock stops while the machine sleeps
	answered int64     // the count then
	told     time.Time // the wait announced last
	limits   bool      // the limits were announced
}

// bears reports whether to wait for something that ends at that time.
func (r *run) bears(end time.Time) bool {
	p := &r.patient
	if p.since.IsZero() || r.pace.answered > p.answered {
		p.since, p.answered = time.Now(), r.pace.answered
	}
	rest := time.Until(end)
	switch {
	case !r.Until.IsZero() && end.After(r.Until):
		return false
	case r.Patience == 0:
		return rest <= maxHold
	}
	return r.Patience < 0 || rest <= r.Patience-time.Since(p.since)
}

// tooLong names the flag that forbids waiting until end, "" for none.
func (r *run) tooLong(end time.Time) string {
	switch {
	case !r.Until.IsZero() && end.After(r.Until):
		return " (--until " + words.Stamp(r.Until) + ")"
	case r.Patience > 0:
		return " (--patience " + words.Took(r.Patience) + ")"
	}
	return ""
}

// bearWith does not count a session that met an API error that is waited out: there only time and
// the entry's attempts are limited.
func (r *run) bearWith(s *session) {
	if r.Mode == Drain && r.Patience != 0 && s.failed.Load() {
		r.pace.fruitless = max(0, r.pace.fruitless-1)
	}
}

// wait is a hold on the next entry.
type wait struct {
	end  time.Time
	what time.Time // identifies the wait: end may be computed anew
	why  string
}

// held returns what holds delivery, the zero wait for nothing.
func (r *run) held(st state) (w wait) {
	if r.Mode != Drain {
		return wait{}
	}
	if b := st.Backoff; b != nil {
		w = wait{b.Until, b.At, "then it tries again" + because(b)}
		if b.Named {
			w.why = "then the limit is over" + because(b)
		}
	}
	if p := st.Paused; p != nil && p.Until != nil && p.Until.After(w.end) {
		w = wait{*p.Until, *p.Until, "then the pause is over"}
		if p.Reason != "" {
			w.why += ": " + words.Brief(p.Reason)
		}
	}
	if !st.waits && st.asleep.After(w.end) {
		w = wait{st.asleep, st.asleep, "then a run's sleep is over"}
	}
	return w
}

// tellWait announces each long wait once: until when, and what for.
func (r *run) tellWait(st state, rest time.Duration) {
	w := r.held(st)
	if w.end.IsZero() {
		w = wait{what: r.pace.notBefore, why: "then the next session begins"}
	}
	if rest < longWait || w.what.Equal(r.patient.told) {
		return
	}
	r.tellLimits()
	r.patient.told = w.what
	if r.Attended {
		w.why += " (Ctrl-C ends it)"
	}
	r.aloud("it waits until " + words.Stamp(time.Now().Add(rest)) + ", " + w.why)
}

func (r *run) tellLimits() {
	if !r.patient.limits {
		r.patient.limits = true
		r.aloud(r.limits())
	}
}

// limits lists what ends the work or an entry, as the flags that set it.
func (r *run) limits() string {
	var all []string
	if r.Terminal.Timeout > 0 {
		all = append(all, "--timeout "+words.Took(r.Terminal.Timeout))
	}
	if !r.Until.IsZero() {
		all = append(all, "--until "+words.Stamp(r.Until))
	}
	args := cli.LimitArguments(r.Settings.Limits)
	for i := 0; i+1 < len(args); i += 2 {
		all = append(all, args[i]+" "+args[i+1])
	}
	if names := r.Settings.Checks.Names(); len(names) > 0 {
		all = append(all, "checks "+strings.Join(names, ", "))
	}
	text := "limits: none"
	if len(all) > 0 {
		text = "limits: " + strings.Join(all, ", ")
	}
	const waits = "; an API limit or an outage is waited out"
	switch {
	case r.Mode != Drain:
	case r.Patience < 0 && r.Until.IsZero():
		text += waits
	case r.Patience < 0:
		text += waits + " until then"
	case r.Patience > 0:
		text += waits + ", for up to " + words.Took(r.Patience)
	default:
		text += fmt.Sprintf("; an API limit is waited out for up to %s, an outage for %s", words.Took(maxHold), words.Count(r.MaxRestarts+1, "session", "sessions"))
	}
	return text
}

// aloud logs a text, and shows it to a person at the sessions' terminal. Call it between two.
func (r *run) aloud(text string) {
	r.Line(time.Now(), text)
	if r.Attended {
		r.Terminal.Note("%s", text)
	}
}

const (
	// firstRest is the rest after a session that ended too early or a try that failed. It doubles
	// with each in a row, up to mostRest.
	firstRest = time.Second
	mostRest  = 5 * time.Minute
)

// pace decides how soon one session follows another.
type pace struct {
	early     bool      // the last session ended too early
	fruitless int       // sessions since an entry was answered
	faults    int       // failed tries to start one since the last session
	answered  int64     // entries answered by all sessions so far
	notBefore time.Time // when the next session may begin
}

// sessionEnded counts a session. answered is the total of all sessions so far; broken says that this one
// ended otherwise than intended; lasted that it was up long enough to count as an idle one.
func (p *pace) sessionEnded(answered int64, broken, lasted bool) {
	p.fruitless++
	p.faults = 0
	if answered > p.answered || lasted {
		p.fruitless, p.answered = 0, answered
	}
	p.early = broken || p.fruitless > 0
	p.rest()
}

// fault counts a try that failed before a session started.
func (p *pace) fault() {
	p.faults++
	p.early = true
	p.rest()
}

func (p *pace) tries() int { return p.fruitless + p.faults }

func (p *pace) rest() {
	p.notBefore = time.Time{}
	if !p.early {
		return
	}
	rest := firstRest
	for range p.tries() - 1 {
		rest = min(2*rest, mostRest)
	}
	rest += time.Duration(rand.Float64() * float64(rest) / 5) // not all at once after an outage
	p.notBefore = time.Now().Add(rest)
}
