package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/check"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/doctor"
	"heartbeat/internal/command/history"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// knownChecks refuses messages that ask for a check which the wiring is known not to have.
func knownChecks(box *inbox.Inbox, messages []inbox.Message) error {
	if !slices.ContainsFunc(messages, func(m inbox.Message) bool { return len(m.Checks) > 0 }) {
		return nil
	}
	v, err := box.View()
	if err != nil {
		return err
	}
	known := v.KnownChecks()
	if err := v.Close(); err != nil || known == nil {
		return err
	}
	for _, m := range messages {
		for _, name := range m.Checks {
			if name != check.None && !slices.Contains(known, name) {
				return check.Unknown(name, known)
			}
		}
	}
	return nil
}

type checkFlags struct {
	cli.InboxFlags
	settings recovery.Settings
	project  string
}

var checkVerb = cli.Verb{
	Name:  "check",
	Args:  "ENTRY",
	IDs:   entryIDs,
	Short: "run an entry's check by hand, and say what it would decide",
	Long: `Run the check that an entry has to pass, as the hook does after its turn, and say what it
would decide. Nothing is changed. The commands are those that the flags name, or else those of
the hook that settings wire to the inbox: your own, and those of the project once you have
trusted its folder in Claude Code.

Exit status: 0 it passes; 1 it does not, or there is none; 75 it could not be run;
128+n signal n ended it.`,
	Example: `heartbeat check job-7
heartbeat check job-7 --check 'make test'`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o checkFlags
		o.Add(f)
		cli.AddChecks(f, &o.settings)
		f.StringVar(&o.project, "project", ".", "the `folder` that the agent works in")
		return onInbox("", o.OpenRead, func(args []string) error {
			if len(args) != 1 {
				return errors.New("name the ENTRY, by its id or entry_id")
			}
			return nil
		}, o.run)
	},
}

func (o *checkFlags) run(box *inbox.Inbox, args []string, s cli.Streams) error {
	entry := args[0]
	project, err := filepath.Abs(o.project)
	if _, none := disk.StatDir(project); errors.Join(err, none) != nil {
		return fmt.Errorf("check: there is no folder %s", words.Line(o.project))
	}
	o.project = project
	turn, metadata, err := turnOf(box, entry)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if len(o.settings.Checks.Commands) == 0 {
		o.settings.Checks = wiredChecks(box, o.project, o.settings.Checks)
	}
	names, err := recovery.Asker{Settings: o.settings}.ChecksOf(inbox.Entry{Metadata: metadata})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s has none", words.Line(entry))
	}
	if err != nil {
		return fmt.Errorf("check: %w, as far as %s is trusted and wires the hook to %s: name the command with --check or --check-named", err, words.Line(o.project), words.Line(box.Path()))
	}
	ctx, stop := program.UntilSignal(0)
	defer stop()
	out := o.settings.Checks.Run(ctx, names, turn, o.project)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return o.report(out, s)
}

func (o *checkFlags) report(out check.Outcome, s cli.Streams) error {
	c := inbox.Check{Name: out.Name, Status: inbox.CheckPassed, Why: out.Why, Seconds: out.Took.Seconds(), Tail: out.Tail}
	decides, status := "the entry would be answered", error(nil)
	switch out.Verdict {
	case check.Failed:
		c.Status, decides = inbox.CheckFailed, "the entry would go on with what it printed, or be set aside after the last try"
		status = cli.Status(cli.ExitError, fmt.Errorf("the %s", out))
	case check.Unable:
		c.Status, decides = inbox.CheckUnable, "the entry would stay in flight, and the check be run again"
		status = cli.Status(cli.ExitLater, fmt.Errorf("the %s", out))
	}
	text := fmt.Sprintf("%s: %s after %s: %s", c.Name, c.Status, words.Took(out.Took), decides)
	if c.Tail != "" {
		text = c.Tail + "\n" + text
	}
	return errors.Join(o.Print(s, c, text), status)
}

// turnOf returns the turn that the check of an entry is run for, as far as it is kept.
func turnOf(box *inbox.Inbox, entry string) (t check.Turn, metadata map[string]json.RawMessage, err error) {
	f, err := history.Find(box, entry)
	if err != nil {
		return t, nil, err
	}
	t = check.Turn{EntryID: f.EntryID, ID: f.ID, Attempt: 1, Try: 1}
	switch {
	case f.Letter != nil:
		t.Prompt, t.Reply, t.Session, t.Attempt, metadata = f.Letter.Text(), f.Letter.LateReply, f.Letter.SessionID, f.Letter.Attempts, f.Letter.Metadata
	case f.Result != nil:
		r := f.Answered
		t.Prompt, t.Reply, t.Session, t.Attempt, metadata = r.Prompt, r.Answer(), r.SessionID, r.Attempt, r.Metadata
	default:
		v, err := box.View()
		if err != nil {
			return t, nil, err
		}
		defer func() { _ = v.Close() }() // only read
		if d := v.InFlight(); d != nil && d.EntryID == f.EntryID {
			t.Prompt, t.Session, t.Attempt, metadata = d.Text(), d.SessionID, d.Attempt, d.Metadata()
			break
		}
		err = v.Waits(nil, func(w inbox.Waiting) bool {
			if w.EntryID == f.EntryID {
				t.Prompt, metadata = w.Text, w.Metadata
			}
			return w.EntryID != f.EntryID
		})
		if err != nil {
			return t, nil, err
		}
	}
	t.Metadata = metadata
	return t, metadata, nil
}

// wiredChecks returns the checks of the Stop hook that a project's settings wire to the inbox, or else the given ones. A
// repository can bring the project's, so those count only where the client would run what they name.
func wiredChecks(box *inbox.Inbox, project string, otherwise *check.Set) *check.Set {
	home, _ := os.UserHomeDir() // "" if there is none
	trusted := doctor.Trusted(doctor.Input{Project: project, Home: home, Environ: os.Environ()})
	own, _ := settings.Path(settings.User, "", home, os.Getenv("CLAUDE_CONFIG_DIR"))
	for _, file := range settings.FilesOf(os.Environ(), project) {
		believed := file.Managed || file.Path == own || trusted
		for _, found := range file.Loaded().Hooks {
			var h hook.Flags
			f := h.Set()
			if believed && found.Event == settings.Stop && found.Exact && f.Parse(found.Flags) == nil && len(h.Orphan.Checks.Commands) > 0 && inbox.SameInbox(h.Inbox, box.Path()) {
				return h.Orphan.Checks
			}
		}
	}
	return otherwise
}
