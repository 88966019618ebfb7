package supervise

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

const (
	// maxHold is the longest back-off waited out without [Options.Patience]. After a longer one whoever started the launcher must come back.
	maxHold  = 10 * time.Minute
	longWait = 10 * time.Second // the shortest wait worth announcing
)

// patience records how this launcher has waited so far.
type patience struct {
	since     time.Time // of the last answer; its clock stops while the machine sleeps
	answered  int64     // the count then
	announced time.Time // the wait announced last
	limits    bool      // the limits were announced
}

// endReason returns why the work ends here, nil if it goes on.
func (r *run) endReason(st state) *ending {
	if r.Mode == Drain {
		switch p, b := st.Paused, st.Backoff; {
		case st.Owner != nil:
			return &ending{reason: Busy, detail: st.Owner.String()}
		case !st.waits:
			return r.nothingWaits(st)
		case p != nil && (p.Until == nil || r.Patience == 0 || !r.canAwait(*p.Until)): // it takes patience to wait out a pause
			return pausedBy(p)
		case b != nil && !r.canAwait(b.Until):
			return &ending{reason: BackingOff, detail: "until " + words.Stamp(b.Until) + r.tooLong(b.Until) + because(b)}
		case !r.Until.IsZero() && time.Until(r.Until) <= 0:
			return &ending{reason: Left, detail: "the time was over" + r.tooLong(time.Now())}
		case !r.UntilDrained && r.report.Sessions > 0:
			return &ending{reason: Left, detail: "the session ended, and entries wait"}
		}
	}
	switch {
	case st.waits && r.box.CheckRoom() != nil:
		return r.stuck(r.box.CheckRoom())
	case r.Mode == Drain && r.pace.fruitless > r.MaxRestarts:
		return &ending{reason: Exhausted, detail: words.Count(r.pace.fruitless, "session", "sessions") +
			" in a row ended without an answered entry" + because(st.Backoff)}
	}
	return nil
}

// nothingWaits decides what an empty inbox means: the end, unless a run wakes soon enough.
func (r *run) nothingWaits(st state) *ending {
	asleep := !st.asleep.IsZero()
	switch {
	case asleep && r.canAwait(st.asleep):
		return nil
	case asleep:
		st.runs.waits = append(st.runs.waits, "a run sleeps until "+words.Stamp(st.asleep))
	case len(st.runs.waits) == 0:
		return &ending{reason: Drained}
	}
	e := &ending{reason: RunWaits, detail: strings.Join(st.runs.waits, "; ")}
	if st.runs.stuck {
		e.reason = RunStuck
	}
	return e
}

// pausedBy returns the ending for a pause. Its reason tells a pause after an API error from one that a person asked for.
func pausedBy(p *inbox.Pause) *ending {
	e := &ending{reason: Paused, detail: "delivery is paused, until `heartbeat resume`"}
	if p.Until != nil {
		e.detail = "delivery is paused until " + words.Stamp(*p.Until) + ", or `heartbeat resume`"
	}
	switch {
	case recovery.WantsPrice(p):
		e.detail += ": " + words.Line(p.Reason) // its end says what to do
	case p.Reason != "":
		e.detail += ": " + words.Brief(p.Reason)
	}
	switch remedy := claude.RemedyOf(p.Reason); {
	case remedy.Login:
		e.reason, e.shown = Authentication, true
	case remedy.Person || recovery.WantsPrice(p):
		e.reason, e.shown = Refused, true
	}
	return e
}

// because names, after a colon, the failure that a back-off is for.
func because(b *inbox.Backoff) string {
	if b == nil || b.Failure == nil {
		return ""
	}
	return ": " + words.Brief(b.Failure.String())
}

// canAwait reports whether this launcher waits for something that ends at end.
func (r *run) canAwait(end time.Time) bool {
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

// excuse takes a session that met an API error out of the count, where such errors are waited out: only
// time and the entry's attempts limit them.
func (r *run) excuse(s *session) {
	if r.Mode == Drain && r.Patience != 0 && s.failed.Load() {
		r.pace.fruitless = max(0, r.pace.fruitless-1)
	}
}

// wait is a hold on delivery.
type wait struct {
	end  time.Time
	what time.Time // identifies the wait: end may be computed anew
	why  string
}

// held returns what holds delivery, the zero wait for nothing.
func (r *run) held(st state) (w wait) {
	if r.Mode != Drain {
		if p := st.Paused; p != nil && p.OfLimit() { // the first turn of a session would cost more
			return wait{*p.Until, *p.Until, "then the limit of the day is over"}
		}
		if st.Backoff == nil || !r.pace.early { // else the first turn of the next session would end likewise
			return w
		}
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

func (r *run) rest(st state) time.Duration {
	rest := time.Until(r.pace.notBefore)
	if w := r.held(st); !w.end.IsZero() {
		rest = max(rest, time.Until(w.end))
	}
	if !r.Until.IsZero() {
		rest = min(rest, time.Until(r.Until))
	}
	return rest
}

// announceWait announces each long wait once: until when, and what for.
func (r *run) announceWait(st state, rest time.Duration) {
	w := r.held(st)
	if w.end.IsZero() {
		w = wait{what: r.pace.notBefore, why: "then the next session begins"}
	}
	if rest < longWait || w.what.Equal(r.patient.announced) {
		return
	}
	r.announceLimits()
	r.patient.announced = w.what
	if r.Attended {
		w.why += " (Ctrl-C ends it)"
	}
	r.announce("it waits until " + words.Stamp(time.Now().Add(rest)) + ", " + w.why)
}

func (r *run) announceLimits() {
	if !r.patient.limits {
		r.patient.limits = true
		r.announce(r.limits())
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
	for flag := range slices.Chunk(cli.LimitArguments(r.Settings.Limits), 2) {
		all = append(all, strings.Join(flag, " "))
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

// announce logs a text, and shows it to a person at the sessions' terminal. Call it between two.
func (r *run) announce(text string) {
	r.Line(time.Now(), text)
	if r.Attended {
		r.Terminal.Note("%s", text)
	}
}

const (
	// firstRest is the rest after a session that ended too early or a try that failed. It doubles with each in a row, up to mostRest.
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

// sessionEnded counts a session. answered is the total of all sessions so far. broken says that this session did
// not end as intended, lasted that it was up long enough to count as an idle one.
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
