package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// openTails begins to read outcomes: the new ones, or with -1 all. After an error the tails stay as they were.
func (a *Agent) openTails(n int) error {
	results, err := outcomes.OpenTail(a.box.ResultsPath(), n)
	letters, wrong := outcomes.OpenTail(a.box.DeadLetterPath(), n)
	if err = errors.Join(err, wrong); err != nil {
		return fmt.Errorf("read what became of the entries: %w", errors.Join(err, results.Close(), letters.Close()))
	}
	err = errors.Join(a.results.Close(), a.letters.Close())
	a.results, a.letters = results, letters
	return err
}

func (a *Agent) readAll() error {
	if err := a.openTails(-1); err != nil {
		return err
	}
	return a.readOutcomes()
}

// readOutcomes notes new outcomes of what is held. The first outcome of an entry counts.
func (a *Agent) readOutcomes() error {
	held := map[string]upstream.Claim{}
	for _, c := range a.ledger.All() {
		held[c.Entry] = c
	}
	note := func(entry string, o outcomes.Outcome) {
		if _, known := a.outcomes[entry]; !known {
			a.outcomes[entry] = o
		}
	}
	err := a.results.Lines(func(line []byte) {
		var r inbox.Result
		if json.Unmarshal(line, &r) == nil && held[r.ID].Entry != "" {
			note(r.ID, outcomes.Outcome{Result: &r})
		}
	})
	if err == nil {
		err = a.letters.Lines(func(line []byte) {
			l, mark, ok := inbox.ParseLetter(line)
			if ok && !mark && isLetterOf(held[l.ID], &l.DeadLetter) {
				note(l.ID, outcomes.Outcome{DeadLetter: &l.DeadLetter})
			}
		})
	}
	if err != nil {
		return fmt.Errorf("read what became of the entries: %w", err)
	}
	return nil
}

// isLetterOf reports whether a dead letter is of the claim's entry, not of one from before the message was given back.
func isLetterOf(c upstream.Claim, l *inbox.DeadLetter) bool {
	switch {
	case c.Entry == "" || c.Refused != "":
		return false
	case c.Hash != "":
		return l.EntryID == c.Hash
	}
	return message.CopyOf(l.Metadata) == c.Appended
}

func (a *Agent) publishOutcomes(ctx context.Context) {
	for _, c := range a.ledger.All() {
		o, known := a.outcomes[c.Entry]
		switch {
		case c.Refused == "" && !known:
			continue
		case !a.conn.Connected():
			return
		}
		what := publishing + c.Entry
		if a.due(what) && a.try(what, a.publishOutcome(ctx, c, o)) {
			delete(a.outcomes, c.Entry)
		}
	}
}

func (a *Agent) publishOutcome(ctx context.Context, c upstream.Claim, o outcomes.Outcome) error {
	TestOnlyStep("answered")
	var fate upstream.Fate
	var err error
	switch {
	case c.Refused != "" || o.DeadLetter != nil && c.GivingBack == nil:
		fate, err = a.dead(ctx, c, o.DeadLetter)
	case o.Result != nil:
		fate, err = a.up.Answer(ctx, c, upstream.Answered(*o.Result))
	default:
		return a.giveBack(ctx, c, time.Until(*c.GivingBack), "")
	}
	if err != nil {
		return err
	}
	TestOnlyStep("settled")
	a.ledger.Forget(c.Entry)
	TestOnlyStep("dropped")
	a.callNext(ctx, c)
	delete(a.retries, launching)
	name := words.Brief(c.ID)
	switch fate.Outcome {
	case upstream.WasAnswered:
		a.self.Answered++
		a.proven = true
		delete(a.retries, beginning)
		a.say(fmt.Sprintf("message %s is answered%s", name, also(fate.Left)))
	case upstream.WasDead:
		a.self.Dead++
		a.say(fmt.Sprintf("message %s is a dead letter: %s%s", name, words.Brief(fate.Decision.Reason), also(fate.Left)))
	default:
		a.say(fmt.Sprintf("message %s was settled by %s first: this outcome is kept as superseded%s", name, fate.Decision.By(), also(fate.Left)))
	}
	return nil
}

// dead makes a dead letter of a message. l is nil for a refused message, which has no entry.
func (a *Agent) dead(ctx context.Context, c upstream.Claim, l *inbox.DeadLetter) (upstream.Fate, error) {
	var letter upstream.Letter
	copy := c.Copy
	if c.Refused != "" {
		letter.Reason, letter.Detail, letter.At = c.Refused, c.Detail, c.At
	} else {
		letter, copy = upstream.Failed(*l), c.Appended
	}
	happened := func(at time.Time, format string, args ...any) {
		letter.History = append(letter.History, words.Stamp(at)+": "+fmt.Sprintf(format, args...))
	}
	happened(c.At, "copy %d came to agent %s, attempt %d", copy, a.o.Agent, c.Attempt)
	if c.HeadersLeft > 0 {
		happened(c.At, "%s of it left out here, which were too many", words.Count(c.HeadersLeft, "header", "headers"))
	}
	if c.Refused != "" {
		happened(c.At, "refused: %s", c.Detail)
	} else {
		if l.DeliveredAt != nil {
			happened(*l.DeliveredAt, "delivered to session %s, attempt %d", l.SessionID, l.Attempts)
		}
		if l.Failure != nil {
			happened(l.Failure.At, "%s", l.Failure)
		}
		happened(l.DeadLetteredAt, "set aside: %s", l.Reason)
	}
	if len(c.Payload) > 0 {
		letter.Payload = c.Payload
	}
	letter.Headers = c.Headers
	return a.up.Dead(ctx, c, letter)
}
