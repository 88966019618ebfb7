package verbs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// dead is what the verbs about dead letters share.
type dead struct {
	common
	ids []string // the messages' ids
	all bool
	yes bool // without asking
	program.Verbatim
	color string

	box jetstream.Stream // the stream of dead letters
	in  jetstream.Stream // the stream of messages, as it was before the first requeue
}

func deadVerb() cli.Verb {
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
		Verbs: []cli.Verb{
			onLetters(cli.Verb{
				Name:    "list",
				Short:   "show one line for each dead letter",
				Long:    "Show one line for each dead letter, the oldest first: when, which message, why, how many attempts it had, and its subject.",
				Example: "heartbeat-nats dead list --json | jq -r .reason",
			}, (*dead).list, func(o *dead, f *pflag.FlagSet) { program.AddColor(f, &o.color) }),
			onLetters(cli.Verb{
				Name:  "show",
				Args:  "ID...",
				Short: "show all there is of a dead letter, and its text in full",
				Long: `Show all there is of a dead letter, with its history, and the text of its
message in full.

Exit status: 0 shown; 1 not: there is no such dead letter.`,
				Example: "heartbeat-nats dead show job-17",
			}, (*dead).show, func(o *dead, f *pflag.FlagSet) { o.AddRaw(f); program.AddColor(f, &o.color) }),
			onLetters(cli.Verb{
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
			}, (*dead).requeueChosen, func(o *dead, f *pflag.FlagSet) { f.BoolVar(&o.all, "all", false, "all dead letters") }),
			onLetters(cli.Verb{
				Name:  "purge",
				Args:  "ID... | --all",
				Short: "throw dead letters away for good",
				Long: `Throw dead letters away for good. At a terminal you are asked first. That a message
became one is kept with the results, so that its id is not worked on again.

Exit status: 0 done, also where there was nothing to do; 1 not done: there is no
such dead letter, or it was not confirmed.`,
				Example: "heartbeat-nats dead purge job-17 --yes",
			}, (*dead).purge, func(o *dead, f *pflag.FlagSet) {
				o.first = func(s cli.Streams) error {
					if !o.yes && !cli.IsTerminal(s.In) {
						return cli.Usage(errors.New("what is purged is gone for good, and nobody is there to be asked: add --yes"))
					}
					return nil
				}
				f.BoolVar(&o.all, "all", false, "all dead letters")
				f.BoolVar(&o.yes, "yes", false, "without asking")
			}),
		},
	}
}

// onLetters completes a verb about dead letters: add declares its flags, and act does its work.
func onLetters(v cli.Verb, act func(*dead, context.Context) error, add func(*dead, *pflag.FlagSet)) cli.Verb {
	v.Build = func(f *pflag.FlagSet) cli.Action {
		var o dead
		o.begin(f)
		add(&o, f)
		return o.action(f, "dead "+v.Name, func(args []string) error {
			o.ids = args
			switch takes := v.Args != ""; {
			case o.all && len(args) > 0:
				return errors.New("both an ID and --all: one of them is enough")
			case takes && !o.all && len(args) == 0:
				return fmt.Errorf("say which: heartbeat-nats dead list shows the letters that %s may be about", v.Name)
			}
			return nil
		}, func(ctx context.Context) (err error) {
			if o.box, err = o.openStream(ctx, message.Dead(o.stream)); err != nil {
				return err
			}
			return act(&o, ctx)
		})
	}
	return v
}

func (o *dead) list(ctx context.Context) error {
	d, now := layout.For(o.s.Out, o.color), o.box.CachedInfo().TimeStamp
	t := layout.NewTable(
		layout.Column{Title: "MESSAGE", Text: true, Cut: true, Most: 32},
		layout.Column{Title: "SET ASIDE"}, layout.Column{Title: "REASON", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "ATTEMPTS", Right: true}, layout.Column{Title: "SUBJECT", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "TEXT", Text: true, Cut: true},
	)
	none := true
	for m, err := range o.messages(ctx, o.box) {
		if err != nil {
			return err
		}
		none = false
		l := letterOf(m)
		text := words.Brief(l.Text)
		if l.object != "" {
			text = "in the object store, " + words.Size(l.Bytes)
		}
		if o.json {
			err = cli.PrintJSON(o.s.Out, l)
		} else {
			err = addRow(d, t, l.ID, d.When(now, l.At), words.Brief(l.Reason), strconv.Itoa(l.Attempts), l.Subject, text)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return nil
	case none:
		o.noLetters()
		return nil
	}
	return d.Table(t)
}

func (o *dead) noLetters() { o.s.Note("nothing was set aside in the stream %s", o.stream) }

func (o *dead) show(ctx context.Context) error {
	first := true
	return forEach(o.s, o.ids, func(id string) error {
		l, err := o.find(ctx, id)
		if err != nil {
			return err
		}
		if l.Text, err = o.payload(ctx, l); err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.s.Out, l)
		}
		if !first {
			fmt.Fprintln(o.s.Out)
		}
		first = false
		d := layout.For(o.s.Out, o.color)
		if err := d.Table(l.describe(d, o.box.CachedInfo().TimeStamp)); err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.FullText(o.s.Out), "\n%s\n", l.Text)
		return err
	})
}

func (l *letter) describe(d layout.Output, now time.Time) *layout.Table {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	row := func(name, value string) {
		if value != "" && value != "0" {
			t.Add(name, words.Sentence(value))
		}
	}
	at := words.Stamp(l.At)
	if d.ForPeople() {
		at += " (" + d.When(now, l.At) + ")"
	}
	row("id", l.ID)
	row("set aside", at)
	row("reason", l.Reason)
	row("detail", l.Detail)
	row("subject", l.Subject)
	row("seq", strconv.FormatUint(l.Seq, 10))
	row("agent", l.Agent)
	row("entry_id", l.EntryID)
	row("attempts", strconv.Itoa(l.Attempts))
	row("copies", strconv.Itoa(l.Copies))
	row("requeued", strconv.Itoa(l.Again))
	row("letter", strconv.FormatUint(l.Letter, 10))
	for _, line := range l.Headers {
		row("header", line)
	}
	for _, line := range l.History {
		row("history", line)
	}
	return t
}

func (o *dead) requeueChosen(ctx context.Context) error {
	all, err := o.chosen(ctx)
	if err == nil {
		o.in, err = o.openStream(ctx, o.stream)
	}
	if err == nil {
		o.kv, err = o.openBucket(ctx, message.Bucket(o.stream))
	}
	if err != nil {
		return err
	}
	return forEach(o.s, all, func(l *letter) error {
		seq, err := o.requeue(ctx, l)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			o.s.Note("the dead letter of %s is gone meanwhile: somebody else requeued or purged it", words.Brief(l.ID))
			return nil
		}
		if err != nil {
			return err
		}
		return o.report(map[string]any{"id": l.ID, "letter": l.Letter, "seq": seq, "again": l.Again + 1},
			fmt.Sprintf("requeued %s (%s:%d)", words.Brief(l.ID), o.stream, seq))
	})
}

func (o *dead) purge(ctx context.Context) error {
	all, err := o.chosen(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	if !o.yes && !program.Agreed(fmt.Sprintf("throw %s away for good?", words.Count(len(all), "dead letter", "dead letters")), o.s) {
		return errors.New("nothing was purged")
	}
	if o.all { // up to the last letter chosen
		if err := o.box.Purge(ctx, jetstream.WithPurgeSequence(all[len(all)-1].Letter+1)); err != nil {
			return fmt.Errorf("take the dead letters away: %w", o.explain(err))
		}
	}
	for _, l := range all {
		if !o.all {
			if err := o.remove(ctx, l); err != nil {
				return err
			}
		}
		if err := o.report(map[string]any{"id": l.ID, "letter": l.Letter, "purged": true}, "purged "+words.Brief(l.ID)); err != nil {
			return err
		}
	}
	return nil
}
