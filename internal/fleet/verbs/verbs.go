// Package verbs is the command heartbeat-nats, which has many agents work through one stream: a file for each verb.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
)

const commandName = "heartbeat-nats"

// Main runs the command and exits.
func Main() { os.Exit(Run(os.Args[1:], cli.StandardStreams(commandName))) }

// Run runs the command, and returns its exit status.
func Run(args []string, s cli.Streams) int {
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return Command().Run(args, s)
}

// Command returns the command, with its verbs in the order of the help.
func Command() program.Program {
	return program.Program{
		Name:  commandName,
		Short: "many agents on many machines, one message answered once",
		Long: `heartbeat-nats has any number of agents, on any number of machines, work through one
stream of NATS JetStream. Each agent has an inbox and a launcher of its own. A message
counts as done only when its entry was answered, and whoever answers it first is the
only one who is heard.`,
		Example: `heartbeat-nats setup --stream WORK --subjects 'work.>'
heartbeat-nats setup --stream WORK --subjects 'work.>' --embed ~/work`,
		Groups: []program.Group{
			{Title: "Begin", Verbs: []cli.Verb{setupVerb(), serveVerb()}},
			{Title: "Work", Verbs: []cli.Verb{agentVerb()}},
			{Title: "Send and read", Verbs: []cli.Verb{sendVerb(), resultsVerb(), cancelVerb()}},
			{Title: "Look after agents", Verbs: []cli.Verb{statusVerb(), metricsVerb(), drainVerb(), pauseVerb(), resumeVerb()}},
			{Title: "Tidy up", Verbs: []cli.Verb{deadVerb()}},
		},
	}
}

// common is what the verbs share: the stream, the server, and the connection.
type common struct {
	stream string
	json   bool
	server link.Flags
	// timeout ends the verb, unless it is 0.
	timeout cli.Span
	// first, unless nil, runs before there is a connection.
	first func(cli.Streams) error

	c *link.Conn
	s cli.Streams
	// kv is the bucket of results, for verbs that read it.
	kv jetstream.KeyValue
	// poll says when to check whether the output still has a reader; nil for never.
	poll <-chan time.Time
}

// begin declares the flag that help lists before a verb's own.
func (o *common) begin(f *pflag.FlagSet) {
	f.StringVar(&o.stream, "stream", "WORK", "`name` of the stream; what belongs to it is named after it")
}

// end declares the flags that help lists last.
func (o *common) end(f *pflag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print JSON, one object a line")
	o.server.Add(f)
}

// action completes the flags, and returns what the verb does: check refuses wrong arguments, and act runs with a
// connection, until a signal or the timeout ends its context.
func (o *common) action(f *pflag.FlagSet, verb string, check func(args []string) error, act func(context.Context) error) cli.Action {
	o.end(f)
	return func(args []string, s cli.Streams) error {
		err := check(args)
		if err == nil {
			err = errors.Join(message.CheckStream(o.stream), o.server.Check(f))
		}
		if err != nil {
			return cli.Usage(err)
		}
		ctx, stop := program.UntilSignal(time.Duration(o.timeout))
		defer stop()
		o.s = s
		if o.first != nil {
			err = o.first(s)
		}
		if err == nil {
			o.c, err = link.Connect(ctx, &o.server, link.Options{Name: commandName + " " + verb, Say: func(sentence string) { s.Note("%s", sentence) }})
		}
		if err == nil {
			defer o.c.Close()
			err = act(ctx)
		}
		if err == nil {
			return nil
		}
		if by, ended := errors.AsType[cli.EndedBy](context.Cause(ctx)); ended && !errors.As(err, new(cli.EndedBy)) {
			err = cli.Status(by.Status(), by)
		}
		return fmt.Errorf("%s: %w", verb, err)
	}
}

func (o *common) openStream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := o.c.JS.Stream(ctx, name)
	return s, o.notFound("the stream "+name, err)
}

func (o *common) openBucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	kv, err := o.c.JS.KeyValue(ctx, name)
	return kv, o.notFound("the bucket "+name, err)
}

// notFound explains why a stream or a bucket could not be opened.
func (o *common) notFound(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrBucketNotFound):
		if err := setup.TooOld(o.c.JS); err != nil { // setup would refuse it, too
			return err
		}
		return fmt.Errorf("%s is not there on %s: %s makes it, and --stream names another one", what, o.c.Where(), setup.Command(o.c.JS, o.stream))
	}
	return fmt.Errorf("look up %s: %w", what, o.explain(err))
}

// explain adds why the server did not answer, or what to do if that is not known.
func (o *common) explain(err error) error {
	if explained := o.c.Explain(err); explained != err {
		return explained
	}
	if link.IsAway(err) {
		return fmt.Errorf("%w: the server %s does not answer: try again once it does", err, o.c.Where())
	}
	return err
}

// watch calls do for each present and later value of the keys that match the patterns, until do is done. It calls do
// with nil once, after the present values.
func (o *common) watch(ctx context.Context, kv jetstream.KeyValue, patterns []string, do func(jetstream.KeyValueEntry) (done bool, err error), options ...jetstream.WatchOpt) error {
	watch, err := kv.WatchFiltered(ctx, patterns, options...)
	if err != nil {
		return fmt.Errorf("read the bucket %s: %w", kv.Bucket(), o.explain(err))
	}
	defer func() { _ = watch.Stop() }() // later updates are not needed
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.poll:
			if err := o.s.ReaderGone(); err != nil {
				return err
			}
		case e, open := <-watch.Updates():
			if !open {
				return errors.Join(ctx.Err(), fmt.Errorf("read the bucket %s: the server or somebody ended that: try again", kv.Bucket()))
			}
			if done, err := do(e); done || err != nil {
				return err
			}
		}
	}
}

// values calls do for each present value of the keys that match the patterns.
func (o *common) values(ctx context.Context, kv jetstream.KeyValue, patterns []string, do func(jetstream.KeyValueEntry)) error {
	return o.watch(ctx, kv, patterns, func(e jetstream.KeyValueEntry) (bool, error) {
		if e != nil {
			do(e)
		}
		return e == nil, nil
	}, jetstream.IgnoreDeletes())
}

func (o *common) report(v any, sentence string) error {
	return program.Report(o.s, o.json, v, sentence)
}

// forEach calls do for each of all. It returns the first error, and complains about later ones.
func forEach[T any](s cli.Streams, all []T, do func(T) error) (first error) {
	for _, one := range all {
		err := do(one)
		if first == nil {
			first = err
		} else if err != nil {
			s.Complain(err)
		}
	}
	return first
}
