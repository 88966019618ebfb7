package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

type drain struct {
	common
	agent string
	undo  bool
	wait  bool
}

func drainVerb() cli.Verb {
	return cli.Verb{
		Name:  "drain",
		Args:  "AGENT",
		Short: "have an agent finish what it has, and take no more",
		Long: `Ask an agent to take no more messages and to end once those that it has are
answered. The request stays on the server, so an agent that is away now drains
when it is back; --undo takes it back. AGENT is its name, as status shows it.

With --wait it returns once the agent holds nothing more.

Exit status: 0 the agent is asked, with --wait: it holds nothing more; 1 not: there
is no such agent; with --wait: 124 the timeout passed, 128+n signal n ended it
(the request stays).`,
		Example: `heartbeat-nats drain build-7
heartbeat-nats drain build-7 --wait --timeout 1h`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o drain
			o.begin(f)
			f.BoolVar(&o.undo, "undo", false, "let the agent take messages again")
			f.BoolVar(&o.wait, "wait", false, "return once the agent holds nothing more")
			f.Var(&o.timeout, "timeout", "give up waiting after this time (seconds or a duration; 0: never)")
			return o.action(f, "drain", func(args []string) error {
				switch {
				case len(args) == 0 || args[0] == "":
					return errors.New("name an agent: heartbeat-nats status shows them")
				case o.undo && o.wait:
					return errors.New("--undo and --wait: an agent that takes messages again is not waited for")
				case f.Changed("timeout") && !o.wait:
					return errors.New("--timeout is about waiting: add --wait")
				}
				o.agent = args[0]
				return cli.NoArgs(args[1:])
			}, o.run)
		},
	}
}

// drained is what drain prints with --json.
type drained struct {
	Agent    string    `json:"agent"`
	Drain    bool      `json:"drain"`
	Holds    int       `json:"holds"` // how many messages
	LastSeen time.Time `json:"last_seen"`
}

func (o *drain) run(ctx context.Context) error {
	kv, err := o.openBucket(ctx, message.Agents(o.stream))
	var d drained
	if err == nil {
		d, err = o.request(ctx, kv)
	}
	switch {
	case err != nil && errors.Is(context.Cause(ctx), program.ErrTimedOut):
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("the server did not answer within %s, so it is not known whether %s was asked: %w", words.Took(time.Duration(o.timeout)), o.agent, err))
	case err != nil:
		return err
	case o.undo:
		return o.report(d, o.agent+" may take messages again")
	case !o.wait:
		return o.report(d, fmt.Sprintf("%s is asked to drain: it holds %s", o.agent, words.Count(d.Holds, "message", "messages")))
	}
	if err := o.untilEmpty(ctx, kv); err != nil {
		return err
	}
	d.Holds = 0
	return o.report(d, fmt.Sprintf("%s holds nothing more", o.agent))
}

// request stores the request, or takes it back. It refuses an unknown agent, whose name must be wrong.
func (o *drain) request(ctx context.Context, kv jetstream.KeyValue) (d drained, err error) {
	e, err := kv.Get(ctx, message.AgentKey(o.agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		var all []string
		if err := o.values(ctx, kv, []string{"agent.*"}, func(e jetstream.KeyValueEntry) {
			if a, err := message.ParsePresence(e.Value()); err == nil {
				all = append(all, a.Agent)
			}
		}); err != nil {
			return d, err
		}
		slices.Sort(all)
		return d, fmt.Errorf("no agent of the stream %s is called %q: there is %s", o.stream, o.agent, cmp.Or(listed(all), "none"))
	}
	if err != nil {
		return d, fmt.Errorf("look up the agent %q: %w", o.agent, o.explain(err))
	}
	a, err := parsed(e, message.ParsePresence)
	if err != nil {
		return d, err
	}
	d = drained{Agent: o.agent, Drain: !o.undo, Holds: len(a.Holds), LastSeen: e.Created()}
	s, err := o.openStream(ctx, o.stream) // for the server's time
	if err != nil {
		return d, err
	}
	switch now := s.CachedInfo().TimeStamp; agentAt(now, a, d.LastSeen).State {
	case over:
		o.s.Note("%s has ended: this is for when it is started again", words.Brief(o.agent))
	case away:
		o.s.Note("%s is away, and was seen last %s: it hears of this once it is back, and others get what it had", words.Brief(o.agent), words.Ago(now, d.LastSeen))
	}
	if o.undo {
		if err := kv.Delete(ctx, message.DrainKey(o.agent)); err != nil {
			return d, fmt.Errorf("take the request back: %w", o.explain(err))
		}
		return d, nil
	}
	m := nats.NewMsg(upstream.KeySubject(o.c.JS, kv.Bucket(), message.DrainKey(o.agent)))
	m.Header.Set(jetstream.MsgTTLHeader, "never") // the bucket forgets other keys after some time
	if m.Data, err = json.Marshal(map[string]any{"agent": o.agent, "at": time.Now().UTC()}); err == nil {
		_, err = o.c.JS.PublishMsg(ctx, m)
	}
	if answer, is := errors.AsType[*jetstream.APIError](err); is && answer.ErrorCode == jetstream.ErrorCode(server.JSMessageTTLDisabledErr) {
		o.s.Note("this request is forgotten after 30 days: %s changes that, before the next", setup.Command(o.c.JS, o.stream))
		_, err = kv.Put(ctx, message.DrainKey(o.agent), m.Data)
	}
	if err != nil {
		return d, fmt.Errorf("ask the agent: %w", o.explain(err))
	}
	return d, nil
}

// untilEmpty waits until the agent holds nothing, and drains or has ended.
func (o *drain) untilEmpty(ctx context.Context, kv jetstream.KeyValue) error {
	holds := "it has not been heard of since"
	err := o.watch(ctx, kv, []string{message.AgentKey(o.agent)}, func(e jetstream.KeyValueEntry) (bool, error) {
		if e == nil {
			return false, nil
		}
		a, err := message.ParsePresence(e.Value())
		if err != nil || len(a.Holds) == 0 && (a.Drain || a.Ended) {
			return true, err
		}
		holds = "it holds " + words.Count(len(a.Holds), "message", "messages")
		if len(a.Holds) > 0 {
			holds += ", " + strings.TrimSpace(words.Brief(a.Holds[0].ID)) + " among them"
		}
		return false, nil
	}, jetstream.IgnoreDeletes())
	if err != nil && errors.Is(context.Cause(ctx), program.ErrTimedOut) {
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("%s was not done within %s: %s; the request stays", o.agent, words.Took(time.Duration(o.timeout)), holds))
	}
	if err != nil {
		return fmt.Errorf("wait for the agent: %w; the request stays", err)
	}
	return nil
}
