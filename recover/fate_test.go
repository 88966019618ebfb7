package recover

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestFates(t *testing.T) {
	overloaded := &inbox.Failure{Error: "overloaded"}   // not the entry's fault
	invalid := &inbox.Failure{Error: "invalid_request"} // perhaps its fault
	finished, open := func() (string, bool) { return "", true }, func() (string, bool) { return "", false }
	yes, no := func() bool { return true }, func() bool { return false }
	never := func() bool { t.Error("the transcript was read for nothing"); return false }
	of := func(kind inbox.VerdictKind) *inbox.Delivery {
		return &inbox.Delivery{Course: inbox.Course{Verdict: &inbox.Verdict{Kind: kind}}}
	}
	done, failed, rejected := of(inbox.VerdictDone), of(inbox.VerdictFailed), of(inbox.VerdictRejected)
	own, day := &Over{Alone: true}, new(Over)

	for name, c := range map[string]struct {
		situation
		action Action
		reason inbox.Reason
	}{
		"another's": {situation{d: done, owner: new(Owner), Sight: Sight{Ended: true}, unreached: never}, Owned, ""},

		"an orphan":                        {situation{}, DeadLettered, inbox.ReasonOrphaned},
		"for a reason":                     {situation{Sight: Sight{Reason: inbox.ReasonAsked}}, DeadLettered, ""},
		"dropped":                          {situation{policy: Drop}, Dropped, ""},
		"retried":                          {situation{policy: Retry}, Requeued, ""},
		"retried too often":                {situation{policy: Retry, used: true}, DeadLettered, inbox.ReasonExhausted},
		"stopped":                          {situation{Sight: Sight{Reason: inbox.ReasonStopped}}, DeadLettered, ""},
		"stopped, retried":                 {situation{policy: Retry, used: true, Sight: Sight{Reason: inbox.ReasonStopped}}, Requeued, ""},
		"stopped, dropped":                 {situation{policy: Drop, Sight: Sight{Reason: inbox.ReasonStopped}}, Dropped, ""},
		"exhausted counts before a reason": {situation{policy: Retry, used: true, Sight: Sight{Reason: inbox.ReasonAsked}}, DeadLettered, inbox.ReasonExhausted},

		"its Stop":                 {situation{Sight: Sight{Ended: true}, unreached: never}, Answered, ""},
		"its Stop, no result":      {situation{Sight: Sight{Ended: true, Missing: "none"}}, Requeued, ""},
		"its Stop, none too often": {situation{used: true, Sight: Sight{Ended: true, Missing: "none"}}, DeadLettered, inbox.ReasonUnresolved},
		"not handed over":          {situation{d: done, used: true, Sight: Sight{NotHandedOver: true}, unreached: never}, Returned, ""},
		"a command of the client":  {situation{proof: finished, Sight: Sight{Output: Output{Command: true}}, unreached: never}, DeadLettered, inbox.ReasonCommand},

		"answered":                     {situation{proof: finished, unreached: never}, Answered, ""},
		"answered under every policy":  {situation{policy: Drop, proof: finished}, Answered, ""},
		"printed, and no hook told":    {situation{policy: Drop, Sight: Sight{Output: Output{Printed: true}}, unreached: never}, Answered, ""},
		"printed, and over its limit":  {situation{Sight: Sight{Output: Output{Printed: true}, Over: own}}, DeadLettered, inbox.ReasonOverBudget},
		"never arrived":                {situation{proof: open, unreached: yes}, Returned, ""},
		"never arrived, attempts used": {situation{policy: Retry, used: true, unreached: yes}, Returned, ""},
		"nothing proven":               {situation{policy: Drop, unreached: no}, Dropped, ""},

		"said done":             {situation{d: done, policy: Drop, proof: finished, unreached: never}, Answered, ""},
		"said done, and failed": {situation{d: done, failure: overloaded}, Answered, ""},
		"said rejected":         {situation{d: rejected, policy: Retry, proof: finished}, DeadLettered, inbox.ReasonRejected},
		"said failed":           {situation{d: failed, policy: Drop, proof: finished}, Requeued, ""},
		"said failed too often": {situation{d: failed, policy: Retry, used: true}, DeadLettered, inbox.ReasonExhausted},

		"over its limit":               {situation{policy: Retry, Sight: Sight{Over: own}}, DeadLettered, inbox.ReasonOverBudget},
		"over its limit, and done":     {situation{d: done, Sight: Sight{Over: own}}, Answered, ""},
		"over its limit, said failed":  {situation{d: failed, Sight: Sight{Over: own}}, DeadLettered, inbox.ReasonOverBudget},
		"over its limit, and answered": {situation{proof: finished, Sight: Sight{Over: own}}, Answered, ""},
		"over the day's":               {situation{policy: Drop, Sight: Sight{Over: day}}, Requeued, ""},
		"over the day's too often":     {situation{used: true, Sight: Sight{Over: day}}, DeadLettered, inbox.ReasonOverBudget},

		"failed":                               {situation{failure: overloaded, policy: Drop, unreached: never}, Requeued, ""},
		"failed however often":                 {situation{failure: overloaded, used: true}, Requeued, ""},
		"failed, perhaps of itself":            {situation{failure: invalid}, Requeued, ""},
		"failed of itself too often":           {situation{failure: invalid, used: true}, DeadLettered, inbox.ReasonExhausted},
		"a failure that is over":               {situation{d: &inbox.Delivery{Course: inbox.Course{Failure: overloaded}}, Sight: Sight{Reason: inbox.ReasonInterrupted}}, DeadLettered, inbox.ReasonFailed},
		"a failure that is over, retried":      {situation{d: &inbox.Delivery{Course: inbox.Course{Failure: invalid}}, policy: Retry}, Requeued, ""},
		"a failure that is over, and answered": {situation{d: &inbox.Delivery{Course: inbox.Course{Failure: overloaded}}, proof: finished}, Answered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.situation
			if s.d == nil {
				s.d = new(inbox.Delivery)
			}
			if s.proof == nil {
				s.proof = open
			}
			if s.unreached == nil {
				s.unreached = no
			}
			f := decide(&s)
			assert.Equal(t, c.action, f.action, f.when)
			assert.Equal(t, c.reason, f.reason, f.when)
		})
	}
}

// docs/design.md prints the table as it is in the code.
func TestTheTableIsInTheDesign(t *testing.T) {
	var table strings.Builder
	for _, f := range fates {
		fmt.Fprintf(&table, "| %s | %s |\n", f.when, f.what)
	}
	design, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	assert.True(t, strings.Contains(string(design), "| the entry in flight | what is written |\n|---|---|\n"+table.String()),
		"copy the table into docs/design.md, section What becomes of an entry:\n%s", table.String())
}
