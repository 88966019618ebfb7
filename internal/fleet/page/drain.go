package page

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Drain asks an agent to take no more.
type Drain struct {
	OnStream
	Agent   string
	Undo    bool
	Wait    bool
	Timeout time.Duration // 0: for ever
}

func drainVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "drain",
		Args:  "AGENT",
		Short: "have an agent finish what it has, and take no more",
		Long: `Ask an agent to take no more messages and to end once those that it has are
answered. The request stays on the server, so an agent that is away now drains
when it is back; --undo takes it back. AGENT is its name, as status shows it.

With --wait it returns once the agent holds nothing more.

Exit status: 0 the agent is asked, with --wait: it holds nothing more; 1 not: there
is no such agent; with --wait: 124 the timeout passed, 128+n signal n ended the
waiting, and the request stays.`,
		Example: `heartbeat-nats drain build-7
heartbeat-nats drain build-7 --wait --timeout 1h`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Drain
			var timeout cli.Span
			f := cli.NewFlags("drain")
			o.addStream(f)
			f.BoolVar(&o.Undo, "undo", false, "let the agent take messages again")
			f.BoolVar(&o.Wait, "wait", false, "return once the agent holds nothing more")
			f.Var(&timeout, "timeout", "give up waiting after this time (seconds or a duration; 0: never)")
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				o.Timeout = time.Duration(timeout)
				if err := o.check(f, args); err != nil {
					return cli.Usage(err)
				}
				return do.Drain(&o, s)
			}
		},
	}
}

func (o *Drain) check(f *pflag.FlagSet, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return errors.New("name an agent: heartbeat-nats status shows them")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q", args[1])
	case o.Undo && o.Wait:
		return errors.New("--undo and --wait: an agent that takes messages again is not waited for")
	case f.Changed("timeout") && !o.Wait:
		return errors.New("--timeout is about waiting: add --wait")
	}
	o.Agent = args[0]
	return o.OnStream.check(f)
}
