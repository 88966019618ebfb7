package page

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Dead is about dead letters.
type Dead struct {
	OnStream
	IDs   []string // the messages' ids
	All   bool
	Yes   bool // without asking
	Raw   bool
	Color string
}

func deadVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "dead",
		Args:  "list|show|requeue|purge [ID...]",
		Short: "look at what no agent could answer, send it again, throw it away",
		Long: `Deal with the dead letters: the messages that agents have set aside.

ID is the message's id, as list has it.`,
		Example: `heartbeat-nats dead list
heartbeat-nats dead show job-17
heartbeat-nats dead requeue job-17
heartbeat-nats dead purge --all --yes`,
		Verbs: []cli.Verb{deadListVerb(do), deadShowVerb(do), deadRequeueVerb(do), deadPurgeVerb(do)},
	}
}

func deadListVerb(do Actions) cli.Verb {
	return letters(cli.Verb{
		Name:    "list",
		Short:   "show one line for each dead letter",
		Long:    "Show one line for each dead letter, the oldest first: when, which message, why, how many attempts it had, and its subject.",
		Example: "heartbeat-nats dead list --json | jq -r .reason",
	}, do.DeadList, func(o *Dead, f *pflag.FlagSet) { addColor(f, &o.Color) })
}

func deadShowVerb(do Actions) cli.Verb {
	return letters(cli.Verb{
		Name:  "show",
		Args:  "ID...",
		Short: "show all there is of a dead letter, and its text in full",
		Long: `Show all there is of a dead letter, its history among it, and the text of its
message in full.

Exit status: 0 shown; 1 not: there is no such dead letter.`,
		Example: "heartbeat-nats dead show job-17",
	}, do.DeadShow, func(o *Dead, f *pflag.FlagSet) { addRaw(f, &o.Raw); addColor(f, &o.Color) })
}

func deadRequeueVerb(do Actions) cli.Verb {
	return letters(cli.Verb{
		Name:  "requeue",
		Args:  "ID... | --all",
		Short: "send the messages of dead letters again",
		Long: `Send the messages of dead letters to the stream again, on their subject and under
their id, and take the letters away. Their attempts are counted anew. A requeue
that is killed on its way can be repeated: a message is not lost, and not answered
twice.

Exit status: 0 done, also where there was nothing to do; 1 not done: there is no
such dead letter, or the stream does not take its message. What was done before
that is printed.`,
		Example: "heartbeat-nats dead requeue job-17",
	}, do.DeadRequeue, func(o *Dead, f *pflag.FlagSet) { f.BoolVar(&o.All, "all", false, "all dead letters") })
}

func deadPurgeVerb(do Actions) cli.Verb {
	return letters(cli.Verb{
		Name:  "purge",
		Args:  "ID... | --all",
		Short: "throw dead letters away for good",
		Long: `Throw dead letters away for good. At a terminal you are asked first. That a message
became one is kept with the results, so that its id is not worked on again.

Exit status: 0 done, also where there was nothing to do; 1 not done: there is no
such dead letter, or it was not confirmed.`,
		Example: "heartbeat-nats dead purge job-17 --yes",
	}, do.DeadPurge, func(o *Dead, f *pflag.FlagSet) {
		f.BoolVar(&o.All, "all", false, "all dead letters")
		f.BoolVar(&o.Yes, "yes", false, "without asking")
	})
}

// letters adds the flags of all verbs about dead letters to v, and those that add declares.
func letters(v cli.Verb, act func(*Dead, cli.Streams) error, add func(*Dead, *pflag.FlagSet)) cli.Verb {
	v.Build = func() (*pflag.FlagSet, cli.Action) {
		var o Dead
		f := cli.NewFlags(v.Name)
		o.addStream(f)
		add(&o, f)
		o.add(f)
		return f, func(args []string, s cli.Streams) error {
			o.IDs = args
			if err := o.check(f, v.Args != ""); err != nil {
				return cli.Usage(err)
			}
			return act(&o, s)
		}
	}
	return v
}

func (o *Dead) check(f *pflag.FlagSet, takes bool) error {
	switch {
	case !takes && len(o.IDs) > 0:
		return errors.New("list shows all of them: heartbeat-nats dead show takes an ID")
	case o.All && len(o.IDs) > 0:
		return errors.New("both an ID and --all: one of them is enough")
	case takes && !o.All && len(o.IDs) == 0:
		return fmt.Errorf("say which: heartbeat-nats dead list shows the letters that %s may be about", f.Name())
	}
	return o.OnStream.check(f)
}
