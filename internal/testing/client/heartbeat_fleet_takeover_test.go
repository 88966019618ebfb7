package client

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/testing/model"
)

// An agent is killed, with all that it started, while its session works on a message.
// Another one gets that after AckWait, and the first does not do it again, neither while
// the other one works on it nor after that.
func TestFleetTakeOver(t *testing.T) {
	waits := []string{"30s", "30s"} // an agent that is quiet for longer than AckWait counts as gone
	if os.Getenv(turnVariable) != "" {
		waits = append(waits, "1m")
	}
	for i, wait := range waits {
		t.Run(fmt.Sprint(wait, " ", i+1), func(t *testing.T) {
			ctx := forLong(t)
			var of answers
			again := make(chan struct{})
			of = func(tag string, nth int) model.Reply {
				if tag == "[m1]" && nth == 1 {
					return model.Hang()
				} else if tag == "[m1]" {
					<-again
				}
				return own(tag, nth)
			}
			c := newCrew(t, of.script(), "--ack-wait", wait)
			one, two := c.join("one").starts(), c.join("two", "--mode", "persist")
			all := jobs(1)
			c.send(all...)
			one.asked(ctx, "[m1]", 1)
			two.starts()
			c.until(ctx, "the other agent asks for messages", func() bool { return c.consumer().NumWaiting > 0 })
			one.killMachine()
			killed := time.Now()
			c.until(ctx, "the other agent has it", func() bool { return len(two.held()) == 1 })
			took := time.Since(killed)
			two.asked(ctx, "[m1]", 1)
			one.starts()
			c.until(ctx, "the first one has nothing left", func() bool { return len(one.held()) == 0 })
			close(again)
			c.isEmpty(ctx)
			k := c.keptOnce(all...)
			assert.Equal(t, kept{twice: 1, by: map[string]int{"two": 1}}, k)
			// The second copy goes back if it comes before its holder was quiet for AckWait.
			assert.LessOrEqual(t, c.consumer().Delivered.Consumer, uint64(3))
			t.Logf("AckWait %s: the other agent had the message %v after the kill, and its session %v after", wait,
				took.Round(10*time.Millisecond), time.Since(killed).Round(10*time.Millisecond))
		})
	}
}
