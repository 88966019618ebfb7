package hook

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
)

// The modes: with an empty inbox, drain approves the stop and persist waits.
const (
	ModeDrain   = "drain"
	ModePersist = "persist"
)

// Flags are the hook's flags, as a settings file sets them.
type Flags struct {
	Inbox      string
	SignalFile string
	Orphan     recovery.Settings
	Limits     price.Plan
	Runs       cli.RunFlags
	Notify     cli.NotifyFlags
	Pace
	Dialogue
	Help    bool
	Version bool
}

// Pace is when the hook delivers, and for how long it waits.
type Pace struct {
	Mode       string
	Idle       cli.Span
	MaxEntries int
	Until      cli.Moment
	MaxBlocks  int
	Background cli.Span
	// GateTimeout is how long to wait for the other hooks of a Stop; GateUnseen is the same for those that show nothing.
	GateTimeout, GateUnseen cli.Span
	Settle                  cli.Span
}

// Dialogue is how the hook speaks with its client, and who started that.
type Dialogue struct {
	Form        string
	Rewake      bool
	Preamble    string
	Announce    bool
	PreambleSet bool   // even if Preamble is empty
	Launched    bool   // a launcher wired this hook for its own session
	Start       string // names the start of the client whose prompt is an entry, "" for none
	Lock        string // identifies the inbox's lock file at the start of the session, "" for any
	NoInput     bool   // the harness gives its hooks no input
}

// Set declares the flags and sets their defaults.
func (h *Flags) Set() *pflag.FlagSet {
	f := cli.NewFlags("heartbeat-stop")
	h.Mode, h.Idle, h.Form, h.Settle = ModeDrain, cli.Span(2*time.Second), string(claude.AsReason), cli.Span(cli.DefaultSettle)
	h.Background = cli.Span(defaultBackground)
	h.GateTimeout, h.GateUnseen = cli.Span(10*time.Minute), cli.Span(10*time.Second)
	cli.AddNamedInbox(f, &h.Inbox)
	f.Var(cli.Choice(&h.Mode, ModeDrain, ModePersist), "mode", "when the inbox is empty: drain approves the stop, persist waits")
	f.Var(&h.Idle, "idle-interval", "persist: how long to wait for an entry before an idle tick (seconds or a duration)")
	f.StringVar(&h.SignalFile, "signal-file", "", "`file` to touch when the stop is approved")
	cli.AddOrphan(f, &h.Orphan)
	cli.AddChecks(f, &h.Orphan)
	f.Var(cli.AtLeast(&h.MaxEntries, 0), "max-entries", "approve the stop after this many answered entries in one session (0: no limit)")
	f.Var(&h.Until, "until", "approve each stop after that time")
	f.Lookup("until").Hidden = true
	f.Var(cli.AtLeast(&h.MaxBlocks, 0), "max-blocks", "approve the stop after this many entries in a row: fewer than the client's cap on blocks (0: no limit)")
	cli.AddLimits(f, &h.Limits)
	f.Var(&h.Background, "background-timeout", "drain: how long an entry waits for tasks that its turn left in the background (0: not at all)")
	f.Var(&h.GateTimeout, "gate-timeout", "how long to wait for the session's other Stop hooks (0: not at all)")
	f.Var(&h.GateUnseen, "gate-unseen", "the same for those that show nothing when they approve (a model that is asked, a server that does not answer)")
	f.Var(cli.Choice(&h.Form, string(claude.AsReason), string(claude.AsContext)), "as", "how the text is handed to the model")
	f.BoolVar(&h.Rewake, "rewake", false, "wait in the background and wake the idle session with the next entry (needs asyncRewake: see install --rewake)")
	f.StringVar(&h.Preamble, "preamble", "", "a `text` for the model before that of an entry (with --rewake: who sent it)")
	f.BoolVar(&h.Announce, "announce", false, "show at the terminal which entry is delivered (as for those of runs)")
	f.Var(&h.Settle, "settle", "how long a last line without newline must stand still to be an entry")
	h.Runs.Add(f)
	h.Runs.AddStateDir(f)
	h.Notify.Add(f)
	f.BoolVar(&h.NoInput, "no-input", false, "for a harness that gives its hooks no input (stdin is not read): .responded says that the entry in flight is answered")
	f.BoolVar(&h.Launched, "launched", false, "serve the session that heartbeat-launch started; its other hooks on this inbox do nothing")
	f.Lookup("launched").Hidden = true
	f.StringVar(&h.Start, "start", "", "the `name` of the client's start, by which its hook knows the entry that is its prompt")
	f.Lookup("start").Hidden = true
	f.StringVar(&h.Lock, "lock", "", "the lock file that the inbox had when the session was started: with another one, nothing is done")
	f.Lookup("lock").Hidden = true
	f.BoolVarP(&h.Help, "help", "h", false, "show this help")
	f.BoolVar(&h.Version, "version", false, "show the version")
	return f
}

// Check refuses flags that contradict each other.
func (h *Flags) Check(f *pflag.FlagSet, rest []string) error {
	h.PreambleSet = f.Changed("preamble")
	for _, name := range []string{"mode", "idle-interval", "as", "background-timeout", "max-blocks"} {
		if h.Rewake && f.Changed(name) {
			return fmt.Errorf("--%s is for a hook that ends the turn itself: it means nothing with --rewake, leave it out", name)
		}
	}
	switch {
	case h.NoInput && (h.Rewake || h.Launched):
		return errors.New("--no-input is for a harness that is no client: without the client's input there is no session to serve or to wake")
	case h.NoInput && len(h.Orphan.Checks.Commands) > 0:
		return errors.New("--no-input is for a harness that reports no turn: there is no reply to check, leave --check out")
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case h.Inbox == "":
		return cli.ErrNoInbox
	}
	return errors.Join(h.Runs.Check(), h.Notify.Check())
}

// Page returns the hook's help page.
func Page() cli.Page {
	flags := (&Flags{}).Set()
	return cli.Page{
		Command: CommandName,
		Long: `heartbeat-stop delivers the next entry of a JSONL inbox after every turn of a Claude
Code session. Claude Code calls it: it reads the hook's JSON on stdin, and prints the
decision on stdout (nothing: the stop is approved). With --rewake it waits in the
background, and wakes the idle session. "heartbeat install" writes it into the settings.
With a verb, such as recover, it becomes heartbeat.`,
		Usage: []string{"--inbox PATH [flags]", "VERB [flags]"},
		Example: `heartbeat install
heartbeat send "summarise the open issues"
claude "Say ready."`,
		Flags: flags,
		Status: `0 decided (an error approves the stop, with a sentence on stderr),
1 wrong usage or no input that could be read, 2 only with --rewake, where stderr is then
the text of an entry, and wakes the session; 128+n signal n ended it.`,
		FilesIntro: "All beside the inbox, readable by you alone. Each inbox needs a directory of its own. Leave alone what says nothing else.",
		Files: []cli.Item{
			{Name: ".inbox-offset", What: "the cursor, decimal: everything before this byte was settled; you may change or remove it"},
			{Name: ".in-flight", What: "the entry in flight, as JSON; you may change or remove it"},
			{Name: ".responded", What: "there while an entry is in flight; you may change or remove it"},
			{Name: ".results.jsonl", What: "the answered entries; rotate it as you like"},
			{Name: ".dead-letter.jsonl", What: "the entries that were set aside; rotate it as you like"},
			{Name: ".events.jsonl", What: "what is rare: pauses, redeliveries, sessions; rotate it as you like"},
			{Name: ".costs.jsonl", What: "the priced parts of transcripts; rotate it as you like"},
			{Name: ".scheduled.jsonl", What: "the entries that wait for their time; remove a line to call one off"},
			{Name: ".*.foreign", What: "lines written elsewhere, which are not believed; \"recover --adopt\" accepts them, or remove it"},
			{Name: ".dead-letter-*.raw", What: "the bytes of a line over 64 MiB; you may remove it"},
			{Name: ".inbox-tries", What: "the tries to take up a large line; you may remove it"},
			{Name: ".entry-*.txt", What: "a text that is too long to be delivered"},
			{Name: ".woken-*.txt", What: "the text in flight that is too long to wake a session with"},
			{Name: ".run-*.json", What: "what is known of a babysitter run, with a .lock and a .result for each result still to be posted; remove it between steps"},
			{Name: ".notified.json", What: "what a person was told (--notify); without it, the last day is told again"},
			{Name: ".notify-lock", What: "which process tells a person, and .notify-next which one is next"},
			{Name: ".consumer-*", What: "how far a consumer of results has come, with a .lock; \"results --forget\" removes it"},
			{Name: ".init.json", What: "what init made, for \"init --undo\""},
			{Name: ".inbox-journal", What: "the commits, from which the others follow"},
			{Name: ".inbox-lock", What: "the lock"},
		},
	}
}
