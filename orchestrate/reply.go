package orchestrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

// effectAt is the effect that an entry is for.
type effectAt struct {
	Bridge
	id string
}

// runOf returns the run of an entry. It fails for an entry of no run. The next step reports a run that cannot be read.
func runOf(box *inbox.Inbox, meta map[string]json.RawMessage) (b Bridge, mark effect.Mark, err error) {
	mark, _ = effect.MarkIn(meta)
	r, err := run.Open(mark.RunDir)
	return Bridge{Box: box, Run: r}, mark, err
}

// awaitedEffect returns the effect of an entry in flight. ok is false if the entry has none, if its run cannot be read,
// or if the effect needs no result any more. passed says that the entry has no check left to pass.
func awaitedEffect(box *inbox.Inbox, d *inbox.Delivery, passed bool) (at effectAt, ok bool) {
	b, mark, err := runOf(box, d.Metadata())
	if err != nil || mark.Effect == "" {
		return at, false
	}
	st, err := b.Run.State()
	return effectAt{b, mark.Effect}, err == nil && st.Effect(mark.Effect) == run.Requested && !b.handedOver(mark.Effect, passed)
}

// handedOver reports whether a result of an effect waits to be posted, with passed even before the check of its entry.
func (b *Bridge) handedOver(effect string, passed bool) bool {
	lock, err := b.identity()
	if err != nil {
		return false
	}
	a, err := b.answerOf(effect, lock)
	if err == nil && a != nil && !passed {
		passed, err = b.isPostable(a)
	}
	return err == nil && a != nil && passed
}

// WhyNotNeeded returns why a run's entry is no longer needed: its effect has a result, the run is done, or this inbox
// has nothing to do with the run, as in a copy. It returns "" for any other entry, such as one that only has members of
// the same names. A step asks again for what its run still waits for.
func WhyNotNeeded(box *inbox.Inbox, id string, meta map[string]json.RawMessage) string {
	b, mark, err := runOf(box, meta)
	switch {
	case !strings.HasPrefix(id, mark.Run+"/"+mark.Effect), // see [Bridge.entryID]
		mark.Effect == "" && mark.Kind != kindFailed && mark.Kind != kindFinish:
		return ""
	case errors.Is(err, run.ErrNoRun):
		return "there is no run in " + mark.RunDir
	case err != nil:
		return ""
	}
	if by, err := b.claimedBy(); err == nil && b.drivenBy(by) {
		return fmt.Sprintf("another inbox drives the run in %s: %s", mark.RunDir, by)
	}
	if mark.Kind == kindFinish {
		if l, err := b.loadLedger(); err == nil && l.Done {
			return fmt.Sprintf("run %s is done", b.Run.ID())
		}
	}
	st, err := b.Run.State()
	switch status := st.Effect(mark.Effect); {
	case err != nil || mark.Effect == "":
		return ""
	case status == run.Unknown:
		return fmt.Sprintf("run %s has no effect %s", b.Run.ID(), mark.Effect)
	case status != run.Requested:
		return fmt.Sprintf("effect %s of run %s has its result (%s)", mark.Effect, b.Run.ID(), status)
	case b.handedOver(mark.Effect, false):
		return fmt.Sprintf("the result of effect %s of run %s was handed over", mark.Effect, b.Run.ID())
	}
	return ""
}

// AcceptReply accepts the agent's reply to an entry in flight that has no check or has passed it. If the entry's effect
// asks for plain text, the reply becomes its result. Without a result, an effect whose time is over fails: where nobody
// else drives the run, no step failed it in time. missing says why the effect still has no result, or is "" if the
// entry needs none.
func AcceptReply(box *inbox.Inbox, d *inbox.Delivery, reply string) (missing string) {
	e, ok := awaitedEffect(box, d, true)
	if !ok {
		return ""
	}
	task, err := e.Run.Task(e.id)
	if err != nil {
		return ""
	}
	f := lateFailure(d)
	switch counts := e.wording(e.id, task).MessageCounts(); {
	case counts && strings.TrimSpace(reply) != "":
		_ = e.handOver(answer{Effect: e.id, Value: TextValue(reply)}, false) // the entry's result has it, too
		return ""
	case f != nil && e.handOver(answer{Effect: e.id, Failure: f}, true) == nil:
		return ""
	case counts:
		return "no result was handed over, and the final message is empty"
	}
	return "no result was handed over by the command that the entry names"
}

// HandOverReported hands over what an agent reported as the result of its entry, if the entry is an effect's: a JSON
// value, or else a text. The caller has checked that the entry is that agent's. Otherwise it is like [Bridge.HandOver].
func HandOverReported(box *inbox.Inbox, d *inbox.Delivery, result string) error {
	e, ok := awaitedEffect(box, d, false)
	if !ok {
		return nil
	}
	value := json.RawMessage(result)
	if !json.Valid(value) {
		value = TextValue(result)
	}
	a := answer{Effect: e.id, Value: value}
	e.awaitCheck(&a, d)
	return e.handOver(a, true)
}

// Announce returns a sentence about the run of an entry, for the person at the terminal, or "" if the entry is not a
// run's or the run cannot be read.
func Announce(box *inbox.Inbox, meta map[string]json.RawMessage) string {
	b, mark, err := runOf(box, meta)
	if err != nil {
		return ""
	}
	l, err := b.loadLedger()
	if err != nil {
		return ""
	}
	said := "run " + b.Run.ID() + ", " + IterationFigures(l.Steps, l.Options.MaxSteps)
	if mark.Effect == "" {
		return said + ", " + mark.Kind
	}
	st, err := b.Run.State()
	if err != nil {
		return said
	}
	waits := 0
	for _, w := range l.Wants {
		if st.Effect(w.Effect) == run.Requested {
			waits++
		}
	}
	return said + ", " + words.Count(waits, "effect waits", "effects wait")
}
