package command

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/consumer"
	"heartbeat/internal/words"
)

// execFlags are the flags of results that hand results over.
type execFlags struct {
	consumer.Options
	forget string
}

func (e *execFlags) add(f *pflag.FlagSet) {
	e.Patience, e.TimeLimit, e.Wait, e.Flag = consumer.Patience, consumer.TimeLimit, time.Nanosecond, "--exec"
	f.Var(cli.Named(&e.Command, "give it a command, or leave the flag out"), "exec", "hand each result and each dead letter to this shell `command`, as JSON on its stdin")
	f.Var(cli.Named(&e.Name, "name the consumer"), "as", "with --exec: the `name` under which its progress is kept")
	f.BoolVar(&e.Fresh, "new", false, "with --exec: if that name is not known yet, begin with what is still to come")
	f.Var((*cli.Span)(&e.Patience), "patience", "with --exec: how long the command may fail until status says so, and until the verb ends without --follow")
	f.Var((*cli.Span)(&e.TimeLimit), "exec-timeout", "with --exec: how long the command may take")
	f.Var(cli.Named(&e.forget, "name a consumer"), "forget", "forget the consumer of that `name`, and keep nothing for it any longer")
}

// consumes reports whether the flags are about a consumer. It refuses flags that do not go with that. lists is whether
// an ENTRY or a flag about the list was given.
func (e *execFlags) consumes(f *pflag.FlagSet, lists bool) (bool, error) {
	for _, name := range []string{"as", "new", "patience", "exec-timeout"} {
		if f.Changed(name) && !f.Changed("exec") {
			return false, errors.New("--" + name + " is about what --exec hands over: name a command, as in --exec ./tell.sh --as mail")
		}
	}
	switch exec, forget := f.Changed("exec"), f.Changed("forget"); {
	case !exec && !forget:
		return false, nil
	case exec && forget:
		return false, errors.New("--forget and --exec do not go together: forget the consumer first")
	case lists || forget && f.Changed("follow"):
		return false, errors.New("a consumer is handed all results, in their order: leave ENTRY, -n, --json and --raw out, and --follow with --forget")
	case exec && e.Name == "":
		return false, errors.New("--exec needs --as NAME, the name under which its progress is kept")
	case exec && e.TimeLimit <= 0:
		return false, errors.New("--exec-timeout is 0: a command needs some time")
	case exec:
		return true, outcomes.CheckConsumer(e.Name)
	}
	return true, outcomes.CheckConsumer(e.forget)
}

func (e *execFlags) run(box *inbox.Inbox, o *resultsFlags, s cli.Streams) error {
	ctx, cancel := program.UntilSignal(0)
	defer cancel()
	if e.forget != "" {
		if err := outcomes.ForgetConsumer(ctx, box, e.forget); err != nil {
			return err
		}
		return program.Say(s, "the consumer "+e.forget+" is forgotten: one of that name begins anew")
	}
	options, err := consumer.Here(e.Options)
	if err != nil {
		return err
	}
	options.Follow, options.Note = o.follow, func(text string) { s.Note("%s", text) }
	handed, err := consumer.Run(ctx, box, options)
	switch {
	case err != nil:
		return err
	case handed == 0:
		noteNothing(&o.InboxFlags, s, "is left to hand over", box)
		return nil
	}
	return program.Say(s, "handed over "+words.Count(handed, "result or dead letter", "results and dead letters")+" as "+e.Name)
}
