package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/see"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/model"
)

// turnVariable is how long a turn takes in TestFleetLongTurn, such as 10m. Then AckWait is
// what setup makes it.
const turnVariable = "HEARTBEAT_TURN"

// shortTurn is several times AckWait, as a turn of ten minutes is several times the minute
// that AckWait is by default.
const (
	shortTurn = 80 * time.Second
	shortWait = 20 * time.Second
)

func turnAndSetup(t *testing.T) (turn time.Duration, setup []string) {
	given := os.Getenv(turnVariable)
	if given == "" {
		return shortTurn, []string{"--ack-wait", shortWait.String()}
	}
	turn, err := time.ParseDuration(given)
	require.NoError(t, err)
	return turn, nil
}

// waits is a tool that says something once its time is over. The client refuses to run one
// long sleep.
func waits(d time.Duration, said string) model.Reply {
	command := fmt.Sprintf("./wait.sh %d '%s'", int(d.Seconds()), said)
	return model.Tool("Bash", map[string]any{"command": command, "description": "wait", "timeout": 600000})
}

const waitScript = `#!/bin/sh
for i in $(seq $1); do sleep 1; done
echo "$2"
`

// However long a turn takes, no other agent gets its message: neither while the client
// waits for its model nor while a tool runs.
func TestFleetLongTurn(t *testing.T) {
	turn, setup := turnAndSetup(t)
	for name, script := range map[string]model.Script{
		"an answer": func(r model.Request) model.Reply {
			if tag := lastTag(r); tag != "[m1]" {
				return own(tag, 1)
			}
			return own("[m1]", 1).After(turn).Living()
		},
		"tools": func(r model.Request) model.Reply {
			// Two of them, since the client gives a tool ten minutes at most.
			switch said := strings.Join(r.ToolResults, ""); {
			case said == "half":
				return waits(turn/2, "[m1]")
			case said != "":
				return model.Text("answer " + said)
			case lastTag(r) == "[m1]":
				return waits(turn/2, "half")
			}
			return own(lastTag(r), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := forLong(t)
			c := newCrew(t, script, setup...)
			one := c.join("one")
			require.NoError(t, os.WriteFile(filepath.Join(one.Project, "wait.sh"), []byte(waitScript), 0o700))
			one.starts()
			all := jobs(1)
			c.send(all...)
			one.asked(ctx, "[m1]", 1)
			// It would take the message, were that handed out once more.
			other := c.join("other", "--no-session").startsAs()
			began, still := time.Now(), time.Duration(0)
			c.until(ctx, "it is answered", func() bool {
				f := see.Glance(ctx, one.box(), nil)
				if since := see.StandsStill(f).Since; f.InFlight != nil && !since.IsZero() {
					still = max(still, f.Now.Sub(since))
				}
				return c.known(all[0]) != nil
			})
			took := time.Since(began)
			c.isEmpty(ctx)
			k := c.keptOnce(all...)
			assert.Zero(t, k.twice)
			assert.Equal(t, 1, k.by["one"])
			info := c.consumer()
			assert.EqualValues(t, 1, info.Delivered.Consumer, "how often the message was handed out\n%s\n%s", one.said(), other.said())
			t.Logf("a turn of %v with an AckWait of %v: handed out %d times; nothing moved for %v at most; requests to the model: %d",
				took.Round(time.Second), info.Config.AckWait, info.Delivered.Consumer, still.Round(time.Second), one.turns())
		})
	}
}

// A worker that says nothing while it works gets its message again.
func TestFleetBareWorker(t *testing.T) {
	wait := 3 * time.Second
	if os.Getenv(turnVariable) != "" {
		wait = 30 * time.Second // what a consumer has by default
	}
	ctx := fleet.Context(t)
	s := fleet.Start(t)
	_, js := s.Connect(t)
	stream := fleet.WorkQueue(t, js, "BARE", "bare.>")
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait})
	require.NoError(t, err)
	_, err = js.Publish(ctx, "bare.a", nil)
	require.NoError(t, err)
	var began time.Time
	for copies := uint64(1); copies <= 2; copies++ {
		batch, err := consumer.Fetch(1, jetstream.FetchContext(ctx))
		require.NoError(t, err)
		for m := range batch.Messages() {
			about, err := m.Metadata()
			require.NoError(t, err)
			require.Equal(t, copies, about.NumDelivered)
		}
		require.NoError(t, batch.Error())
		if copies == 1 {
			began = time.Now()
		}
	}
	t.Logf("with an AckWait of %v it came again after %v", wait, time.Since(began).Round(100*time.Millisecond))
}
