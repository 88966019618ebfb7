package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/meter"
	recovery "heartbeat/recover"
)

// RecoverVerb returns the verb recover for the command of that name: heartbeat or this one.
func RecoverVerb(command string) cli.Verb {
	return cli.Verb{
		Name:  "recover",
		Short: "decide about an entry that a session left unanswered",
		Long: `Decide about the entry that was in flight when its session ended, and remove
the session's leftovers (.in-flight, .responded). Call it before the next
session, and before truncating the inbox. An entry that was answered is only
tidied up; one whose text provably never reached the model is delivered again
whatever the policy. So is one whose turn ended in an error of the model's API, while
its attempts last; delivery then waits until the limit ends, for a growing time, or
for a person (heartbeat status says which).

An entry whose session lives is left to that session. With --force a person takes it
away: the session works on, and what it still answers is kept with the dead letter.

Results, events and scheduled entries that were not written here, but came with a
copy or a repository, are moved away by whichever command finds them, and not
believed. If they are yours, --adopt takes them back.

Exit status: 0 done (also when nothing was in flight), 1 a session that lives has the
entry, or the state is not valid or could not be changed: nothing was discarded.`,
		Example: command + ` recover --on-orphan retry || exit 1`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var i cli.InboxFlags
			var o recovery.Settings
			f := cli.NewFlags("recover")
			i.Add(f)
			cli.AddOrphan(f, &o)
			force := false
			f.BoolVar(&force, "force", false, "decide although the session that has the entry lives")
			f.BoolVar(&i.Adopt, "adopt", false, "take results, events and scheduled entries for yours that were not written here")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				return runRecover(&i, recovery.Asker{Settings: o, Force: force, Note: s.Note}, s)
			}
		},
	}
}

// ByPerson refuses what an agent has started. what is that in words.
func ByPerson(box *inbox.Inbox, what string) error {
	v, err := box.View()
	if err != nil {
		return err
	}
	all, err := v.Sessions()
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if recovery.InSession(os.Getpid(), all) {
		return fmt.Errorf("%s is a person's to say, and this was started from within a session: nothing was changed", what)
	}
	return nil
}

func runRecover(i *cli.InboxFlags, a recovery.Asker, s cli.Streams) (err error) {
	if a.Box, err = i.Open(); err != nil {
		return err
	}
	if a.Force {
		if err := ByPerson(a.Box, "--force"); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
	}
	if err := charging.Gone(a.Box, "", nil); err != nil {
		s.Note("what the sessions spent is not all counted: %v", err)
	}
	report, err := recovery.Run(context.Background(), a, recovery.Sight{})
	switch {
	case err != nil:
		return fmt.Errorf("recover: %w", err)
	case report.Action == recovery.Owned:
		return fmt.Errorf("recover: %s: nothing was changed: end that session, or say --force", report.Owner)
	}
	s.Warn(report.Warnings)
	err = cli.InTransaction(a.Box, s, func(tx *inbox.Tx) error {
		return errors.Join(charging.Note(tx, a.Box, ""), tx.Commit(), recovery.ForgetSpills(a.Box, tx.InFlight()))
	})
	if err == nil {
		err = a.Box.ForgetLeftovers(context.Background())
	}
	if err != nil {
		s.Note("%v: compact tries again", err) // the decision is committed
	}
	return i.Print(s, report, report.String())
}

const (
	// meterVerb is how heartbeat-stop is told to be the status line's program.
	meterVerb = "meter"
	// oldMeterName is the program's name of earlier releases. Settings have it until they are
	// installed again, and a link of that name leads to heartbeat-stop.
	oldMeterName = "heartbeat-meter"
)

// meterCommand returns the verb meter of the command of that name: what a session's statusLine
// runs. It books what the client says to the session's meter, and then becomes the status
// line that the person had before.
//
// The client starts it after each answer of the model and shows what it prints. It is
// silent on errors: what is lost comes with the next reading.
func meterCommand(command string) cli.Verb {
	return cli.Verb{
		Name:  meterVerb,
		Short: "count what a session spends, as its status line",
		Long: `Book what a Claude Code session has spent to the meter beside an inbox. It is a
status line: the client runs it after each answer, with what it knows as JSON on
stdin, and shows what it prints. "heartbeat install" and heartbeat-launch wire it.

Without --then it prints nothing. It is silent on errors.

Exit status: that of --then; 0 without it, 1 wrong usage.`,
		Example: command + ` meter --inbox work/inbox.jsonl --then '~/.claude/line.sh'`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var inbox, then string
			f := cli.NewFlags(meterVerb)
			f.StringVar(&inbox, "inbox", "", "`path` of the inbox beside which to count")
			f.StringVar(&then, "then", "", "go on as this `line` for /bin/sh, with the same on stdin: the status line that a person had before")
			return f, func(args []string, s cli.Streams) error {
				switch err := cli.NoArgs(args); {
				case err != nil:
					return err
				case inbox == "":
					return cli.Usage(errors.New("--inbox is missing: it names the inbox beside which to count"))
				}
				stdin := readStatus(s.In)
				bookStatus(inbox, stdin)
				if then != "" {
					becomeLine(then, stdin)
				}
				return nil
			}
		},
	}
}

// maxStatus is the most that is read of stdin. The client gives some thousand bytes.
const maxStatus = 1 << 20

func readStatus(from io.Reader) []byte {
	all := make([]byte, 0, 16<<10)
	for len(all) < maxStatus {
		if len(all) == cap(all) {
			all = append(all, 0)[:len(all)]
		}
		n, err := from.Read(all[len(all):min(cap(all), maxStatus)])
		all = all[:len(all)+n]
		if err != nil {
			break // what there is may suffice
		}
	}
	return all
}

// bookStatus is silent, and never keeps the person's line from being shown.
func bookStatus(inbox string, stdin []byte) {
	defer func() { _ = recover() }()
	r, err := meter.ParseStatus(stdin)
	if err != nil {
		return
	}
	inbox, err = filepath.Abs(inbox)
	if err != nil {
		return
	}
	pid, _ := strconv.Atoi(os.Getenv("CLAUDE_PID")) // 0 if unknown: then all are one
	r.Client = meter.ClientName(machine.KnownBoot(machine.BootID()), pid, machine.ProcessStart(pid))
	r.Wait = time.Second // the person's line comes after it
	_, _ = meter.Advance(filepath.Dir(inbox), r)
}

// becomeLine replaces this process by the person's line. It returns where that cannot be.
func becomeLine(then string, stdin []byte) {
	if becomeStdin(stdin) == nil {
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", then}, os.Environ())
	}
}
