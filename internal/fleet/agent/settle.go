package agent

import (
	"context"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/words"
)

// settle tells the stream what became of all that has an outcome.
func (a *Agent) settle(ctx context.Context) {
	for _, c := range a.ledger.All() {
		o, known := a.outcomes[c.Entry]
		switch {
		case c.Refused == "" && !known:
			continue
		case !a.o.Connected():
			return
		}
		what := "settle " + c.Entry
		if a.due(what) && a.try(what, a.settleOne(ctx, c, o)) {
			delete(a.outcomes, c.Entry)
		}
	}
}

// settleOne tells the stream of one outcome, and drops the claim.
func (a *Agent) settleOne(ctx context.Context, c claims.Claim, o inbox.Outcome) error {
	TestOnlyStep("answered")
	var fate settle.Fate
	var err error
	switch {
	case c.Refused != "" || o.DeadLetter != nil && c.GivingBack == nil:
		fate, err = a.dead(ctx, c, o.DeadLetter)
	case o.Result != nil:
		fate, err = a.o.Upstream.Answer(ctx, a.upstream(c), settle.Answered(*o.Result))
	default:
		return a.giveBack(ctx, c, time.Until(*c.GivingBack), "")
	}
	if err != nil {
		return err
	}
	TestOnlyStep("settled")
	a.ledger.Forget(c.Entry)
	TestOnlyStep("dropped")
	a.failures, a.notUntil = 0, time.Time{}
	name := words.Brief(c.ID)
	switch fate.Outcome {
	case settle.WasAnswered:
		a.self.Answered++
		a.say(fmt.Sprintf("message %s is answered%s", name, also(fate.Left)))
	case settle.WasDead:
		a.self.Dead++
		a.say(fmt.Sprintf("message %s is a dead letter: %s%s", name, words.Brief(fate.Decision.Reason), also(fate.Left)))
	default:
		a.say(fmt.Sprintf("message %s was settled by %s first: this outcome is kept as superseded%s", name, fate.Decision.Agent, also(fate.Left)))
	}
	return nil
}

// dead makes a dead letter of a message: one that was refused has no entry, and l is nil.
func (a *Agent) dead(ctx context.Context, c claims.Claim, l *inbox.DeadLetter) (settle.Fate, error) {
	var letter settle.Letter
	if c.Refused != "" {
		letter.Outcome = settle.Outcome{Reason: c.Refused, Detail: c.Detail, At: c.At}
		letter.History = append(a.came(c, c.Copy), fmt.Sprintf("%s: refused: %s", words.Stamp(c.At), c.Detail))
		l = nil
	} else {
		letter = settle.Failed(*l)
		letter.History = a.history(c, l)
	}
	var err error
	if letter.Payload, err = a.payload(c, l); err != nil {
		return settle.Fate{}, err
	}
	letter.Headers = c.Headers
	return a.o.Upstream.Dead(ctx, a.upstream(c), letter)
}

// came says how a message came here.
func (a *Agent) came(c claims.Claim, copy uint64) []string {
	all := []string{fmt.Sprintf("%s: copy %d came to agent %s, attempt %d", words.Stamp(c.At), copy, a.o.Agent, c.Attempt)}
	if c.HeadersLeft > 0 {
		all = append(all, fmt.Sprintf("%s: %s of it left out here, which were too many", words.Stamp(c.At), words.Count(c.HeadersLeft, "header", "headers")))
	}
	return all
}

// history is what happened to a message here.
func (a *Agent) history(c claims.Claim, l *inbox.DeadLetter) []string {
	all := a.came(c, c.Appended)
	if l.DeliveredAt != nil {
		all = append(all, fmt.Sprintf("%s: delivered to session %s, attempt %d", words.Stamp(*l.DeliveredAt), l.SessionID, l.Attempts))
	}
	if l.Failure != nil {
		all = append(all, fmt.Sprintf("%s: %s", words.Stamp(l.Failure.At), l.Failure))
	}
	return append(all, fmt.Sprintf("%s: set aside: %s", words.Stamp(l.DeadLetteredAt), l.Reason))
}
