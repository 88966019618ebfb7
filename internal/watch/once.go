package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/see"
)

// once prints one view, and tells a person about what needs one.
func once(o *options, roots []string, s cli.Streams) error {
	taken := signals.Take()
	defer taken.Stop()
	ctx, cancel := taken.Context()
	defer cancel()
	l := New(roots...)
	l.Find(time.Now())
	s.Warn(l.Notes)
	show := o.table
	if o.json {
		show = o.objects
	}
	err := show(ctx, l, s)
	for _, why := range l.Failed {
		err = errors.Join(err, errors.New(why))
	}
	if o.notify != "" {
		err = errors.Join(err, tell(ctx, o, l.Paths, s))
	}
	if sig, _ := taken.Signal(); sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return err
}

// objects prints what status says of each inbox.
func (o *options) objects(ctx context.Context, l *Lookout, s cli.Streams) (err error) {
	all, failed := make([]any, len(l.Paths)), make([]error, len(l.Paths))
	see.Each(len(l.Paths), func(i int) {
		box, bad := inbox.Open(l.Paths[i], inbox.Options{})
		if bad == nil {
			all[i], bad = o.status(ctx, box)
		}
		if bad != nil {
			failed[i] = fmt.Errorf("%s: %w", l.Paths[i], bad)
		}
	})
	for i, of := range all {
		if err = errors.Join(err, failed[i]); of == nil {
			continue
		}
		if bad := cli.PrintJSON(s.Out, of); bad != nil {
			return fmt.Errorf("print the view: %w", bad)
		}
	}
	return err
}

// table prints a line for each inbox.
func (o *options) table(ctx context.Context, l *Lookout, s cli.Streams) (err error) {
	p, _ := l.Look(ctx, time.Now(), nil)
	if l.Locked() {
		select {
		case <-time.After(LockPatience):
		case <-ctx.Done():
		}
		p, _ = l.Look(ctx, time.Now(), nil)
	}
	if len(p.Inboxes) == 0 {
		s.Note("no inbox was found")
		return nil
	}
	for _, now := range p.Inboxes {
		if now.Unreadable != nil {
			err = errors.Join(err, fmt.Errorf("%s: %s", now.Path(), now.Why))
		}
	}
	out := layout.For(s.Out, o.color)
	name := names(p)
	if !out.ForPeople() {
		name = func(path string) string { return path }
	}
	t := inboxTable(p, name, func(at time.Time) string { return out.When(p.At, at) }, true)
	if bad := out.Table(t); bad != nil {
		return fmt.Errorf("print the view: %w", bad)
	}
	return err
}

// tell runs the notify command for each inbox.
func tell(ctx context.Context, o *options, paths []string, s cli.Streams) (err error) {
	for _, path := range paths {
		args := []string{"notify", "--inbox", path, "--notify", o.notify}
		if o.stall > 0 {
			args = append(args, "--stall", time.Duration(o.stall).String())
		}
		told, failed := runVerb(ctx, o.verbs, path, args)
		for line := range strings.Lines(told) {
			_, text, _ := strings.Cut(line, "\t") // the kind comes first
			s.Note("told about %s: %s", path, strings.TrimSpace(text))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("tell about %s: %w", path, failed))
		}
	}
	return err
}
