package recover_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

func TestDecide(t *testing.T) {
	overloaded := &inbox.Failure{Error: "overloaded"}   // not the entry's fault
	invalid := &inbox.Failure{Error: "invalid_request"} // perhaps its fault
	finished := func() (string, bool) { return "did it", true }
	open := func() (string, bool) { return "", false }
	yes, no := func() bool { return true }, func() bool { return false }
	never := func() bool { t.Error("the transcript was read for nothing"); return false }
	done, failed, rejected := inbox.Verdict{Kind: inbox.VerdictDone}, inbox.Verdict{Kind: inbox.VerdictFailed}, inbox.Verdict{Kind: inbox.VerdictRejected}
	type facts = recovery.Facts
	dead := func(reason inbox.Reason) recovery.Decision {
		return recovery.Decision{Action: recovery.DeadLettered, Reason: reason}
	}
	again := recovery.Decision{Action: recovery.Requeued, Counts: true}

	for name, c := range map[string]struct {
		facts
		want recovery.Decision
	}{
		"an orphan":                        {facts{}, dead(inbox.ReasonOrphaned)},
		"for a reason":                     {facts{Reason: inbox.ReasonAsked}, dead(inbox.ReasonAsked)},
		"dropped":                          {facts{Policy: recovery.Drop}, recovery.Decision{Action: recovery.Dropped}},
		"retried":                          {facts{Policy: recovery.Retry, Attempt: 2, MaxAttempts: 3}, again},
		"retried too often":                {facts{Policy: recovery.Retry, Attempt: 3, MaxAttempts: 3}, dead(inbox.ReasonExhausted)},
		"exhausted counts before a reason": {facts{Policy: recovery.Retry, Attempt: 1, MaxAttempts: 1, Reason: inbox.ReasonAsked}, dead(inbox.ReasonExhausted)},

		"answered":                     {facts{Finished: finished, Unreached: never}, recovery.Decision{Action: recovery.Answered, Reply: "did it"}},
		"answered under every policy":  {facts{Policy: recovery.Drop, Finished: finished}, recovery.Decision{Action: recovery.Answered, Reply: "did it"}},
		"never arrived":                {facts{Finished: open, Unreached: yes}, recovery.Decision{Action: recovery.Returned}},
		"never arrived, attempts used": {facts{Policy: recovery.Retry, Attempt: 3, MaxAttempts: 3, Unreached: yes}, recovery.Decision{Action: recovery.Returned}},
		"nothing proven":               {facts{Policy: recovery.Drop, Finished: open, Unreached: no}, recovery.Decision{Action: recovery.Dropped}},

		"said done":               {facts{Verdict: &done, Policy: recovery.Drop, Finished: finished, Unreached: never}, recovery.Decision{Action: recovery.Answered, Reply: "did it", Verdict: &done}},
		"said done, and no reply": {facts{Verdict: &done, Failure: overloaded}, recovery.Decision{Action: recovery.Answered, Verdict: &done}},
		"said rejected":           {facts{Verdict: &rejected, Policy: recovery.Retry, MaxAttempts: 3, Finished: finished}, recovery.Decision{Action: recovery.DeadLettered, Reason: inbox.ReasonRejected, Verdict: &rejected}},
		"said failed":             {facts{Verdict: &failed, Policy: recovery.Drop, Attempt: 2, MaxAttempts: 3, Finished: finished}, recovery.Decision{Action: recovery.Requeued, Counts: true, Verdict: &failed}},
		"said failed too often":   {facts{Verdict: &failed, Policy: recovery.Retry, Attempt: 3, MaxAttempts: 3}, recovery.Decision{Action: recovery.DeadLettered, Reason: inbox.ReasonExhausted, Counts: true, Verdict: &failed}},

		"failed":                               {facts{Failure: overloaded, Policy: recovery.Drop, Unreached: never}, recovery.Decision{Action: recovery.Requeued}},
		"failed however often":                 {facts{Failure: overloaded, Attempt: 9, MaxAttempts: 3}, recovery.Decision{Action: recovery.Requeued}},
		"failed, perhaps of itself":            {facts{Failure: invalid, Attempt: 1, MaxAttempts: 3}, again},
		"failed of itself too often":           {facts{Failure: invalid, Attempt: 3, MaxAttempts: 3}, dead(inbox.ReasonExhausted)},
		"a failure that is over":               {facts{Failure: overloaded, Overcome: true, Reason: inbox.ReasonInterrupted}, dead(inbox.ReasonFailed)},
		"a failure that is over, retried":      {facts{Failure: invalid, Overcome: true, Policy: recovery.Retry, Attempt: 1, MaxAttempts: 3}, again},
		"a failure that is over, and answered": {facts{Failure: overloaded, Overcome: true, Finished: finished}, recovery.Decision{Action: recovery.Answered, Reply: "did it"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, recovery.Decide(c.facts)) })
	}
}
