package agent

import (
	"encoding/json"
	"errors"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// openTails begins to read outcomes: from the start if something is held, since its
// outcome may have come while no agent ran.
func (a *Agent) openTails() error {
	n := 0
	if a.ledger.Len() > 0 {
		n = -1
	}
	return a.openTailsFrom(n)
}

// readAll reads all outcomes once more.
func (a *Agent) readAll() error {
	err := errors.Join(a.results.Close(), a.letters.Close())
	if err == nil {
		err = a.openTailsFrom(-1)
	}
	if err == nil {
		err = a.readOutcomes()
	}
	return err
}

func (a *Agent) openTailsFrom(n int) (err error) {
	if a.results, err = a.box.TailResults(n); err == nil {
		a.letters, err = a.box.TailDeadLetters(n)
	}
	if err != nil {
		return fmt.Errorf("read what became of the entries: %w", err)
	}
	return nil
}

// readOutcomes notes the outcomes that have come of what is held. The first one counts.
func (a *Agent) readOutcomes() error {
	held := map[string]claims.Claim{}
	for _, c := range a.ledger.All() {
		held[c.Entry] = c
	}
	note := func(entry string, o inbox.Outcome) {
		if _, known := a.outcomes[entry]; !known {
			a.outcomes[entry] = o
		}
	}
	err := a.results.Lines(func(line []byte) {
		var r inbox.Result
		if json.Unmarshal(line, &r) == nil && held[r.ID].Entry != "" {
			note(r.ID, inbox.Outcome{Result: &r})
		}
	})
	if err == nil {
		err = a.letters.Lines(func(line []byte) {
			l, mark, ok := inbox.ParseLetter(line)
			if ok && !mark && isOf(held[l.ID], &l.DeadLetter) {
				note(l.ID, inbox.Outcome{DeadLetter: &l.DeadLetter})
			}
		})
	}
	if err != nil {
		return fmt.Errorf("read what became of the entries: %w", err)
	}
	return nil
}

// isOf reports whether a dead letter is of the entry that the claim made, and not of one
// from before the message was given back.
func isOf(c claims.Claim, l *inbox.DeadLetter) bool {
	switch {
	case c.Entry == "" || c.Refused != "":
		return false
	case c.Hash != "":
		return l.EntryID == c.Hash
	}
	return message.CopyOf(l.Metadata) == c.Appended
}

// payload is the payload of a message that becomes a dead letter, as it came: what was kept
// of it, else the text of its entry's dead letter.
func (a *Agent) payload(c claims.Claim, l *inbox.DeadLetter) ([]byte, error) {
	data, err := a.ledger.Payload(c)
	if errors.Is(err, claims.ErrNoPayload) {
		a.say(fmt.Sprintf("the dead letter of message %s has no more than the text of its entry: %v", words.Brief(c.ID), err))
		err = nil
	}
	if err != nil || len(data) > 0 || l == nil {
		return data, err
	}
	return []byte(inbox.Letter{DeadLetter: *l}.Text()), nil
}
