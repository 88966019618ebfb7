package command

import (
	"context"
	"errors"
	"fmt"
	"heartbeat/internal/bridges"
	"heartbeat/internal/cli"
	"os/user"

	"github.com/spf13/pflag"

	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

func breakpointVerb() cli.Verb {
	return cli.Verb{
		Name:  "breakpoint",
		Args:  "list|approve|reject [EFFECT]",
		Words: []string{"list", "approve", "reject"},
		Short: "answer the questions that babysitter runs have for a person",
		Long: `Show the breakpoints that runs of this inbox wait at, or answer one: the run then
goes on, and what it asks for next is in the inbox. A rejection is an answer, and no
error. Answering runs babysitter, and so the code that the run names. A run that
is not in .a5c/runs here, or in BABYSITTER_RUNS_DIR, has to be named with --run.

Exit status: 0 shown, or answered; 1 not.`,
		Example: `heartbeat breakpoint list --inbox work/inbox.jsonl
heartbeat breakpoint approve 01M7XNH40T944T6T9N87JFKQKG --inbox work/inbox.jsonl --response "go ahead"`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var i cli.InboxFlags
			var r cli.RunFlags
			var a orchestrate.Answer
			f := cli.NewFlags("breakpoint")
			i.Add(f)
			f.StringArrayVar(&r.Dirs, "run", nil, "`directory` of the run (default: those of this inbox in .a5c/runs, or BABYSITTER_RUNS_DIR)")
			r.AddCommand(f)
			f.StringVar(&a.Response, "response", "", "what the run is told besides")
			f.StringVar(&a.Option, "option", "", "which of the options is chosen")
			return f, func(args []string, s cli.Streams) error {
				if len(args) == 0 {
					return cli.Usage(errors.New("list, approve or reject?"))
				}
				switch {
				case args[0] == "list" && len(args) == 1:
					return listBreakpoints(&i, &r, s)
				case (args[0] == "approve" || args[0] == "reject") && len(args) == 2:
					a.Approved = args[0] == "approve"
					return answerBreakpoint(&i, &r, args[1], a, s)
				}
				return cli.Usage(fmt.Errorf("breakpoint %s takes %s", args[0], map[bool]string{true: "nothing", false: "the id of one effect"}[args[0] == "list"]))
			}
		},
	}
}

func listBreakpoints(i *cli.InboxFlags, r *cli.RunFlags, s cli.Streams) error {
	box, err := i.Open()
	if err != nil {
		return err
	}
	known, err := knownRuns(box, r.Dirs, s)
	if err != nil {
		return err
	}
	for _, of := range known {
		all, err := (&orchestrate.Bridge{Box: box, Run: of.Run}).Questions()
		if err != nil {
			return err
		}
		for _, h := range all {
			if err := i.Print(s, h, fmt.Sprintf("%s  %s  %s", words.Line(h.Effect), words.Stamp(h.Since), words.Brief(h.Question))); err != nil {
				return err
			}
		}
	}
	return nil
}

func answerBreakpoint(i *cli.InboxFlags, r *cli.RunFlags, effect string, a orchestrate.Answer, s cli.Streams) error {
	box, err := i.Open()
	if err != nil {
		return err
	}
	known, err := knownRuns(box, r.Dirs, s)
	if err != nil {
		return err
	}
	of, err := runOf(known, effect)
	if err == nil {
		err = of.mayRun("")
	}
	if err != nil {
		return err
	}
	b, err := bridges.OpenWith(r, box, orchestrate.Driver{Dir: of.Dir(), Options: bridges.Options(r).Beside(of.kept)}, s.Note)
	if err != nil {
		return err
	}
	if me, err := user.Current(); err == nil {
		a.By = me.Username
	}
	if err := b.Answer(context.Background(), effect, a); err != nil {
		return err
	}
	// Its next entries are in the inbox then, which wakes who waits there.
	report, err := b.Step(context.Background())
	if err != nil {
		s.Note("the answer is posted; the step behind it was not taken: %v", err)
		return i.Print(s, a, "answered "+effect)
	}
	return i.Print(s, a, "answered "+effect+"; "+stepSentence(report))
}
