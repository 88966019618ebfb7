package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/launch"
	"heartbeat/internal/supervise"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

type askFlags struct {
	sendFlags
	project   string
	settings  recovery.Settings
	noSession bool
}

var askVerb = cli.Verb{
	Name:  "ask",
	Args:  "[TEXT | -] [-- CLIENT-FLAG...]",
	Short: "send one prompt, run sessions until it is settled, and print the reply",
	Long: `Send one prompt, as heartbeat send does, run heartbeat-launch until that prompt is
settled, and print the reply: a step of a pipeline. The arguments are checked before
anything is sent. What waits in the inbox already comes first; steps that run at the
same time on one inbox take turns. No session goes further than this prompt, and each
ends with this command.

With --check 'make test' the prompt is answered once that command passes: what it prints
otherwise is the agent's next turn, up to --check-tries.

With --id a step may run again: an answer that exists is printed again and costs
nothing, and another prompt with that id is refused. Name the prompt by what it is
about, for example by a commit and by itself. The prompt does not show in the
process list when it comes from stdin or a file.

What follows -- goes to claude, or is a whole command without a prompt, as in
-- codex exec -m gpt-5. With --timeout the session is ended once the time is over,
and the outcome is what became of the prompt by then; an earlier entry that is in flight
has an hour more. At a terminal one line shows meanwhile what the command waits for.

Exit status: 0 answered; 3 it became a dead letter; 124 the timeout passed;
75 no session took the prompt, or there is no room for it: run it again later;
78 somebody has to do something first, also if a command or the folder is missing;
128+n signal n ended it; 1 otherwise.`,
	Example: `git log -1 -p | heartbeat ask --id "review-$SHA" --timeout 20m > review.md
heartbeat ask --max-cost 2 "is the release ready?" -- --allowedTools=Read`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o askFlags
		o.settle, o.timeout, o.wait = cli.Span(cli.DefaultSettle), cli.Span(10*time.Minute), true
		o.Add(f)
		f.Var(cli.Named(&o.id, "name the prompt, or leave the flag out"), "id", "give the prompt this `id`, and have it answered only once")
		f.Var(cli.Named(&o.file, "name a file, or leave the flag out"), "file", "read the prompt from this `file`")
		f.StringArrayVar(&o.meta, "meta", nil, "metadata `key=value`, kept with the result (may be repeated)")
		cli.AddEntryLimits(f, &o.limits, cli.EntryCost)
		f.Var(&o.timeout, "timeout", "give up after this time (seconds or a duration; 0: never)")
		f.StringVar(&o.project, "project", ".", "the `folder` that the agent works in")
		cli.AddOrphan(f, &o.settings)
		cli.AddChecks(f, &o.settings)
		f.BoolVar(&o.noSession, "no-session", false, "start no session: another one works on the inbox")
		o.AddRaw(f)
		return func(args []string, s cli.Streams) error {
			client := []string(nil)
			if at := f.ArgsLenAtDash(); at >= 0 {
				args, client = args[:at], args[at:]
			}
			w, err := o.worker(client)
			if err != nil {
				return err
			}
			return o.ask(f, args, w, s)
		}
	},
}

// worker returns what runs the sessions, nil for --no-session, and reports missing requirements before a send.
func (o *askFlags) worker(command []string) (*askWorker, error) {
	if _, err := disk.StatDir(o.project); err != nil {
		return nil, cli.Status(cli.ExitPerson, fmt.Errorf("there is no folder %s", words.Line(o.project)))
	}
	if o.noSession {
		return nil, nil
	}
	if len(command) == 0 || strings.HasPrefix(command[0], "-") {
		command = append([]string{"claude"}, command...)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, cli.Status(cli.ExitPerson, fmt.Errorf("%s is not on the PATH", words.Line(command[0])))
	}
	for _, name := range []string{"heartbeat-stop", "heartbeat-launch"} {
		if _, err := cli.Beside(name); err != nil {
			return nil, cli.Status(cli.ExitPerson, err)
		}
	}
	return &askWorker{client: withPrompt(command), project: o.project, settings: o.settings}, nil
}

// withPrompt inserts a first prompt before the flags, because a flag may take several values.
func withPrompt(command []string) []string {
	at := 1
	if client.Of("", command).Name == "codex" {
		at = max(at, slices.Index(command, "exec")+1, slices.Index(command, "e")+1)
	}
	return slices.Insert(command, at, "Say that you are ready.")
}

func (o *askFlags) ask(f *pflag.FlagSet, args []string, w *askWorker, s cli.Streams) error {
	messages, err := o.messages(args, s.In)
	if cli.SayFound(f, s) {
		err = cmp.Or(launch.CheckForeign(o.Inbox), err)
	}
	if err != nil {
		return err
	}
	if err := makeFolder(o.Inbox, s); err != nil {
		return asLauncher(fmt.Errorf("ask: %w", err))
	}
	box, err := o.Open()
	if err != nil {
		return asLauncher(err)
	}
	if !f.Changed("timeout") || o.timeout <= 0 {
		if err := waitsForItself(box, "it", "use heartbeat send without --wait"); err != nil {
			return asLauncher(fmt.Errorf("ask: %w", err))
		}
	}
	receipts, err := box.AppendAll(context.Background(), messages, time.Duration(o.settle))
	if err != nil {
		return asLauncher(fmt.Errorf("ask: %w", err))
	}
	r := receipts[0]
	s.Warn(r.Warnings)
	if r.Found == inbox.FoundAnswered {
		w = nil
	}
	ctx, stop := program.UntilSignal(time.Duration(o.timeout))
	defer stop()
	_, hide := awaited{box, &r, time.Now()}.show(ctx, s)
	outcome, err := w.work(ctx, box, r)
	hide()
	now := waited{ID: r.ID, EntryID: r.EntryID, Result: outcome.Result, DeadLetter: outcome.DeadLetter}
	now.price(box)
	err = o.conclude(box, &now, err, w)
	if err == nil {
		s.Note("%s was answered", words.Line(r.ID))
	}
	return errors.Join(o.printWaited(s, now, false), err)
}

// asLauncher gives what keeps a prompt from being sent the exit status with which a launcher ends for it.
func asLauncher(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return cli.Status(cli.ExitPerson, err)
	} else if supervise.ReasonOf(err) != supervise.SetUp {
		return cli.Status(cli.ExitLater, err)
	}
	return err
}

// conclude sets the outcome. Unless it is an answer, the error also quotes the last words of the sessions.
func (o *askFlags) conclude(box *inbox.Inbox, now *waited, err error, w *askWorker) error {
	id := words.Line(now.ID)
	var by cli.EndedBy
	switch {
	case now.Result != nil: // even if it came while its session ended
		now.Outcome = outcomeAnswered
		return nil
	case errors.Is(err, errNobodyTook):
		now.Outcome, now.Found = outcomeUnknown, whereIs(box, now.ID)
		status := cli.ExitError
		if s := w.report.Exit; s == cli.ExitPerson || s == cli.ExitLater { // the launcher's own words tell who must act
			status = s
		}
		return cli.Status(status, fmt.Errorf("no session came to %s%s: %s", id, w.lastWords(), whyOf(box, w)))
	case errors.Is(err, program.ErrTimedOut):
		now.Outcome = outcomeTimedOut
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("%s was not answered in time (--timeout %s): %s%s", id, &o.timeout, now.became(box, w), w.lastWords()))
	case errors.As(err, &by):
		now.Outcome = outcomeEnded
		return fmt.Errorf("%w: %s: %s%s", by, id, now.became(box, w), w.lastWords())
	case now.DeadLetter != nil:
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("%w%s", o.judge(box, now, err), w.lastWords()))
	}
	return o.judge(box, now, err)
}

// became describes what became of an entry that was not answered.
func (w *waited) became(box *inbox.Inbox, by *askWorker) string {
	if w.DeadLetter != nil {
		return "it is a dead letter now: " + w.DeadLetter.Reason.Why(w.DeadLetter.Failure)
	}
	w.Found = whereIs(box, w.ID)
	return "it stays " + w.Found + ": " + whyOf(box, by)
}
