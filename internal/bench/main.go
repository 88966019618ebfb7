// Command bench measures heartbeat-stop and heartbeat-launch as whole processes, and prints a
// Markdown table for each measure.
//
//	go run ./internal/bench                  a few minutes
//	go run ./internal/bench -quick           some seconds, for a first look
//	go run ./internal/bench -full            also long inboxes and drains: many minutes more
//	go run ./internal/bench -only tick       one measure
//	go run ./internal/bench -only fleet -full     with 10,000 messages
//	go run ./internal/bench -only tick -sync 1ms     where each sync takes a millisecond longer
//
// Everything that is measured is also verified. The exit status is 1 if something was
// wrong or could not be measured, or if a promise about a day of entries did not hold.
// Its table says if another target was missed; that is no error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	quick, full bool
	only, dir   string
	sync        time.Duration
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "few runs of everything, to see that it works")
	f.BoolVar(&o.full, "full", false, "take the measures of long inboxes and drains besides")
	f.StringVar(&o.only, "only", "", "the one measure to take: "+strings.Join(names(), ", "))
	f.StringVar(&o.dir, "dir", os.TempDir(), "`directory` on the file system to measure on")
	f.DurationVar(&o.sync, "sync", 0, "how much longer each sync of what is measured takes, to stand for another disk (Linux)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.only != "" && !slices.Contains(names(), o.only) {
		return o, fmt.Errorf("-only %q: it is one of %s", o.only, strings.Join(names(), ", "))
	}
	return o, nil
}

// wants reports whether to take the measure.
func (o options) wants(m measure) bool {
	if o.only != "" {
		return o.only == m.name
	}
	return o.full || !m.long
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	p := usual
	if o.quick {
		p = quick
	}
	if o.full {
		p.fleet.messages = fullMessages
	}
	b, err := newBench(ctx, p, o.dir, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	if o.sync > 0 {
		if err := slowSyncs(o.sync); err != nil {
			return err
		}
		b.sync = o.sync
		fmt.Fprintf(stdout, "Each sync takes %v longer than this disk needs.\n", o.sync)
	}
	fmt.Fprintf(stdout, "%s\n", b.setting())
	var failed error
	for _, m := range measures {
		if !o.wants(m) || ctx.Err() != nil {
			continue
		}
		b.say("%s ...", m.name)
		t, err := m.take(b)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		fmt.Fprintf(stdout, "\n%s", t)
	}
	return errors.Join(failed, ctx.Err())
}
