package verbs

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
)

// SessionIDs is what the arguments of verbs name that are about one session: see
// [cli.Verb].
const SessionIDs = "sessions"

// named is the paragraph about what a session may be called.
const named = `ID is the session's id, or a beginning of it that no other session has.`

// Shown is what every verb about hosted sessions has.
type Shown struct {
	DB   string // only sessions beside this database; "": all of this user's
	JSON bool
}

func (o *Shown) add(f *pflag.FlagSet) {
	f.StringVar(&o.DB, "db", "", "look for sessions beside this database (`path`), in place of all that this user hosts")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
}

func (o *Shown) check(f *pflag.FlagSet) error {
	if f.Changed("db") && o.DB == "" {
		return errors.New("--db is empty: name a database, or leave the flag out")
	}
	return nil
}

// Look is about one session.
type Look struct {
	Shown
	ID    string
	Color string
}

// one takes the one argument of a verb that is about one session.
func (o *Look) one(f *pflag.FlagSet, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return errors.New("name a session: heartbeat-host list shows them")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q", args[1])
	}
	o.ID = args[0]
	return o.check(f)
}

func addColor(f *pflag.FlagSet, value *string) {
	*value = colour.Auto
	f.Var(cli.Choice(value, colour.Auto, colour.Always, colour.Never), "color", "colour: auto (on a terminal, without NO_COLOR), always or never")
}

// Listing is about all sessions.
type Listing struct {
	Shown
	Running bool // only those that have not ended
	Color   string
}

func listVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "list",
		Short: "show one line for each session",
		Long: `Show one line for each session that this user hosts or has hosted: its state, since
when, what became of its entries, and why it ended. A session whose host was killed
is shown as dead until somebody finishes it (cancel, gc, drain-dlq).`,
		Example: `heartbeat-host list --running
heartbeat-host list --json | jq -r 'select(.status == "failed") | .sessionId'`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Listing
			f := cli.NewFlags("list")
			o.add(f)
			f.BoolVar(&o.Running, "running", false, "only those that have not ended")
			addColor(f, &o.Color)
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), usage(o.check(f))); err != nil {
					return err
				}
				return do.List(&o, s)
			}
		},
	}
}

func statusVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "status",
		Args:  "ID",
		IDs:   SessionIDs,
		Short: "show what a session is doing, and what became of it",
		Long: `Show a session's state, its entries, how its client ended, what the guild was told,
and what is wrong. It asks the session's host, or reads what that left behind.

` + named + `

Exit status: 0 shown; 1 not: there is no such session, or more than one.`,
		Example: `heartbeat-host status ses-1
heartbeat-host status ses-1 --json | jq -r .status`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Look
			f := cli.NewFlags("status")
			o.add(f)
			addColor(f, &o.Color)
			return f, func(args []string, s cli.Streams) error {
				if err := o.one(f, args); err != nil {
					return usage(err)
				}
				return do.Status(&o, s)
			}
		},
	}
}

// Logs is about a session's log.
type Logs struct {
	Look
	Count  int // 0: all
	Follow bool
}

func logsVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "logs",
		Args:  "ID",
		IDs:   SessionIDs,
		Short: "print the log of a session's host",
		Long: `Print the end of a session's log: what its host did, the tool calls, and what the
client wrote to stderr. With --follow it goes on until the host is done. With --json a line is an object: {"line":"..."}.

` + named + `

Exit status: 0 printed; 1 not: there is no such session, or more than one, or no
log; 128+n signal n ended the following.`,
		Example: "heartbeat-host logs ses-1 --follow",
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Logs
			f := cli.NewFlags("logs")
			o.add(f)
			f.IntVarP(&o.Count, "count", "n", 50, "print the last `N` lines (0: all)")
			f.BoolVar(&o.Follow, "follow", false, "go on with what comes")
			return f, func(args []string, s cli.Streams) error {
				err := o.one(f, args)
				if err == nil && o.Count < 0 {
					err = errors.New("--count is negative: it takes how many, or 0 for all")
				}
				if err != nil {
					return usage(err)
				}
				return do.Logs(&o, s)
			}
		},
	}
}

// Attach is about a session's messages.
type Attach struct {
	Look
	From int64
}

func attachVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "attach",
		Args:  "ID",
		IDs:   SessionIDs,
		Short: "print a session's messages, and go on with what comes",
		Long: `Print the messages of a session from a number on, each once and in order, and those
that come, until the session has ended. Any number of readers may do so at once, and
none holds the session up. A session that has ended is read from its database.

With --json a message is {"n":1,"at":"...","type":"assistant","content":{...}}, where
content is what the client wrote. Otherwise it is one line with the beginning of its
text. To go on later, pass the next number with --from.

` + named + `

Exit status: 0 the session has ended and all was printed; 1 not: there is no such
session, or more than one, or its messages cannot be read; 128+n signal n ended the
following.`,
		Example: `heartbeat-host attach ses-1
heartbeat-host attach ses-1 --from 120 --json | jq -c .content`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Attach
			f := cli.NewFlags("attach")
			o.add(f)
			f.Int64Var(&o.From, "from", 1, "begin with the message of this `number`")
			addColor(f, &o.Color)
			return f, func(args []string, s cli.Streams) error {
				err := o.one(f, args)
				if err == nil && o.From < 1 {
					err = fmt.Errorf("--from is %d: messages are numbered from 1", o.From)
				}
				if err != nil {
					return usage(err)
				}
				return do.Attach(&o, s)
			}
		},
	}
}

// Send is about a later prompt.
type Send struct {
	Look
	Text    string // - is stdin
	EntryID string
}

func sendVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "send",
		Args:  "ID [TEXT | -]",
		IDs:   SessionIDs,
		Short: "append a prompt to a session's inbox",
		Long: `Append an entry to the inbox of a session that runs, and print the entry's id. The
session works through it once it has answered those before. The text is the
argument, or stdin (with -, or without a TEXT).

With --id, sending again is safe: an id that is in the inbox is not appended again,
and refused if it is that of another text.

` + named + `

Exit status: 0 the entry is (or was) in the inbox; 1 it is not: there is no such
session, or it has ended, and the sentence says how to go on with it.`,
		Example: `heartbeat-host send ses-1 "and now the tests"
git diff | heartbeat-host send ses-1 -`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Send
			f := cli.NewFlags("send")
			o.add(f)
			f.StringVar(&o.EntryID, "id", "", "give the entry this `id`, and append it only once")
			return f, func(args []string, s cli.Streams) error {
				o.Text = "-"
				if len(args) == 2 {
					o.Text, args = args[1], args[:1]
				}
				err := o.one(f, args)
				if err == nil && f.Changed("id") && o.EntryID == "" {
					err = errors.New("--id is empty: name the entry, or leave the flag out")
				}
				if err != nil {
					return usage(err)
				}
				return do.Send(&o, s)
			}
		},
	}
}

// Cancel is about ending a session.
type Cancel struct {
	Look
	Grace time.Duration // negative: as the session was started
	Wait  bool
}

func cancelVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "cancel",
		Args:  "ID",
		IDs:   SessionIDs,
		Short: "end a session",
		Long: `End a session: its client gets SIGTERM, and its whole process tree SIGKILL after the
grace. The session is then reported as cancelled. cancel returns once the host has
taken note, and with --wait once the session has ended and its host is done.

If the host itself was killed, cancel finishes the session in its place: it kills
what is left, settles the entry in flight, and reports the end. A session that has
ended stays as it is.

` + named + `

Exit status: 0 the session ends, or has ended; 1 it does not: there is no such
session, or more than one, or its host cannot be reached.`,
		Example: "heartbeat-host cancel ses-1 --grace 30s --wait",
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Cancel
			var grace cli.Span
			f := cli.NewFlags("cancel")
			o.add(f)
			f.Var(&grace, "grace", "how long the client may take before it is killed (default: what the session was started with)")
			f.Lookup("grace").DefValue = ""
			f.BoolVar(&o.Wait, "wait", false, "return once the session has ended and its host is done")
			return f, func(args []string, s cli.Streams) error {
				if err := o.one(f, args); err != nil {
					return usage(err)
				}
				if o.Grace = -1; f.Changed("grace") {
					o.Grace = time.Duration(grace)
				}
				return do.Cancel(&o, s)
			}
		},
	}
}
