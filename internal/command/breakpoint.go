package command

import (
	"context"
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/effect"
)

type breakpointFlags struct {
	cli.InboxFlags
	shownFlags
	ways   cli.RunFlags
	answer orchestrate.Answer
}

var breakpointVerb = cli.Verb{
	Name:  "breakpoint",
	Args:  "list|approve|reject [EFFECT]",
	Short: "answer the questions that babysitter runs have for a person",
	Long: `Show the breakpoints that runs of this inbox wait at, or answer one. A run that is
not in .a5c/runs here, or in BABYSITTER_RUNS_DIR, has to be named with --run.`,
	Example: `heartbeat breakpoint list
heartbeat breakpoint approve 01M7XNH40T944T6T9N87JFKQKG --response "go ahead"`,
	Verbs: []cli.Verb{
		listBreakpointsVerb,
		answerVerb("approve", "say yes to what a run asks", "Answer a breakpoint of a run with yes."),
		answerVerb("reject", "say no to what a run asks", "Answer a breakpoint of a run with no, which is an answer and not an error."),
	},
}

var listBreakpointsVerb = cli.Verb{
	Name:    "list",
	Short:   "show what runs ask",
	Long:    "Show the breakpoints that runs of this inbox wait at, each with its effect and its question.",
	Example: "heartbeat breakpoint list",
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &breakpointFlags{}
		o.addFlags(f)
		o.addColor(f)
		return onInbox("", changing(&o.InboxFlags), cli.NoArgs, o.list)
	},
}

func answerVerb(name, short, what string) cli.Verb {
	return cli.Verb{
		Name:  name,
		Args:  "EFFECT",
		Short: short,
		Long: what + ` The
run then goes on, and what it asks for next is in the inbox. Answering runs
babysitter, and so the code that the run names. EFFECT is what list shows.

Exit status: 0 answered; 1 not.`,
		Example: "heartbeat breakpoint " + name + ` 01M7XNH40T944T6T9N87JFKQKG --response "see #12"`,
		Build: func(f *pflag.FlagSet) cli.Action {
			o := &breakpointFlags{answer: orchestrate.Answer{Approved: name == "approve"}}
			o.addFlags(f)
			o.ways.AddCommand(f)
			o.ways.AddCodeChanges(f)
			f.StringVar(&o.answer.Response, "response", "", "a `text` for the run, with the answer")
			f.StringVar(&o.answer.Option, "option", "", "the `name` of the option that is chosen")
			return onInbox("", changing(&o.InboxFlags), func(args []string) error {
				if len(args) != 1 {
					return fmt.Errorf("breakpoint %s takes the id of one effect", name)
				}
				return nil
			}, o.reply)
		},
	}
}

func (o *breakpointFlags) addFlags(f *pflag.FlagSet) {
	o.InboxFlags.Add(f)
	f.StringArrayVar(&o.ways.Dirs, "run", nil, "`directory` of the run (default: those of this inbox in .a5c/runs, or BABYSITTER_RUNS_DIR)")
}

func (o *breakpointFlags) list(box *inbox.Inbox, _ []string, s cli.Streams) error {
	known, err := knownRuns(box, o.ways.Dirs, s)
	if err != nil {
		return err
	}
	rows := o.display(s.Out).list(layout.Column{Title: "EFFECT"}, layout.Column{Title: "ASKED"}, layout.Column{Title: "QUESTION", Text: true})
	there := false
	var unread error // of damaged runs, which hide no other run's question
	for _, k := range known {
		all, err := (&orchestrate.Bridge{Box: box, Run: k.Run}).Questions()
		unread = errors.Join(unread, err)
		for _, h := range all {
			there = true
			if !o.JSON {
				rows.row(h.Effect, rows.when(h.Since), words.Brief(h.Question))
			} else if err := cli.PrintJSON(s.Out, h); err != nil {
				return err
			}
		}
	}
	if !there && unread == nil {
		noteNothing(&o.InboxFlags, s, "waits for a person", box)
	}
	return errors.Join(unread, rows.end())
}

func (o *breakpointFlags) reply(box *inbox.Inbox, args []string, s cli.Streams) error {
	known, err := knownRuns(box, o.ways.Dirs, s)
	if err != nil {
		return err
	}
	id, a := effect.IDIn(args[0]), o.answer
	r, err := runOf(known, id)
	if err == nil {
		err = r.mayRun("")
	}
	if err != nil {
		return err
	}
	b, err := orchestrate.OpenDriven(&o.ways, box, r.Dir(), r.kept, s.Note)
	if err != nil {
		return err
	}
	if me, err := user.Current(); err == nil {
		a.By = me.Username
	}
	if err := b.Answer(context.Background(), id, a); err != nil {
		return err
	}
	// The step puts the run's next entries into the inbox, which wakes whoever waits there.
	step, err := b.Step(context.Background())
	if err != nil {
		s.Note("the answer is posted, but the step after it failed: %v", err)
		return reportDone(&o.InboxFlags, s, a, "answered "+id)
	}
	return reportDone(&o.InboxFlags, s, a, "answered "+id+"; "+stepSentence(step))
}
