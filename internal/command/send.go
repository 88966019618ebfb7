package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

type sendFlags struct {
	cli.InboxFlags
	quietFlag
	file      string
	batch     string
	format    string
	id        string
	meta      []string
	notBefore cli.Moment
	expires   cli.Moment
	settle    cli.Span
	limits    price.Limits
	checks    []string
	wait      bool
	timeout   cli.Span
	program.Verbatim
}

var sendVerb = cli.Verb{
	Name:  "send",
	Args:  "[TEXT | -]",
	Short: "append entries to the inbox, and wait for the answer if asked",
	Long: `Append one entry to the inbox and print its id. The text is the argument, the
content of --file, or stdin (with -, or without a TEXT). Nothing of it shows in
the process list when it comes from stdin or a file. The entry is on the disk
when send returns. The inbox's folder is made where only that is missing.

With --id, sending again is safe: an id that is scheduled, queued, in flight or
answered is not appended a second time. Only the text is compared. If the id belongs to
an entry with another text, even to one that became a dead letter, nothing is sent. The
id of an entry that was canceled is free again.

With --wait the reply is printed in place of the id, once the entry was answered. At a
terminal one line shows meanwhile what the command waits for. Waiting holds nothing up
and may be given up: the entry stays where it is, and the same --id waits for it again.

With --batch each line of a file is an entry: a JSON string, or an object with a
prompt and, if need be, id, not_before, expires_at, limits and metadata. A line that is
neither keeps all of them from being sent, or with --format lines is a text of its
own, as it is in an inbox. So does one whose id has another text.

With --not-before the entry waits in .scheduled.jsonl, and whoever works on the inbox
next appends it once its time has come. With --expires an entry that is still to be
delivered by then becomes a dead letter.

With --max-cost, --max-tokens or --max-time the entry becomes a dead letter once
all its attempts together have cost that. The session's own limits hold as well.

With --check the entry counts as answered once that check of the wiring has passed, in place
of the check for every entry: see heartbeat launch --check. Commands come from the
wiring alone; a name that it does not have is refused.

Exit status: 0 the entry is (or was) in the inbox, with --wait: it was answered;
1 it is not; with --wait: 3 it became a dead letter, 124 the timeout passed, and
128+n signal n ended it (the entry stays where it is).`,
	Example: `heartbeat send "summarise the open issues"
git log -1 -p | heartbeat send --id "review-$SHA" --meta branch=main -
heartbeat send --wait --timeout 10m "is the release ready?"`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o sendFlags
		o.settle = cli.Span(cli.DefaultSettle)
		o.Add(f)
		f.Var(cli.Named(&o.file, "name a file, or leave the flag out"), "file", "read the text from this `file`")
		f.Var(cli.Named(&o.batch, "name a file, or - for stdin"), "batch", "send each line of this `file` (- is stdin)")
		o.format = formatJSON
		f.Var(cli.Choice(&o.format, formatJSON, formatLines), "format", "what --batch takes for an entry: json only, or lines of any text")
		f.Var(cli.Named(&o.id, "name the entry, or leave the flag out"), "id", "give the entry this `id`, and append it only once")
		f.StringArrayVar(&o.meta, "meta", nil, "metadata `key=value`, kept with the result (may be repeated)")
		f.Var(&o.notBefore, "not-before", "keep it out of the inbox until then (a time, or a duration from now)")
		f.Var(&o.expires, "expires", "set it aside if it is not delivered by then (a time, or a duration from now)")
		cli.AddEntryLimits(f, &o.limits, cli.EntryCost)
		f.StringArrayVar(&o.checks, "check", nil, "the `name` of a check of the wiring that it has to pass, or none (may be repeated)")
		f.BoolVar(&o.wait, "wait", false, "wait for the answer, and print it")
		f.Var(&o.timeout, "timeout", "give up waiting after this time (seconds or a duration; 0: never)")
		f.Var(&o.settle, "settle", "how long a last line without newline must stand still before it gets one")
		o.addQuiet(f, "entry")
		o.AddRaw(f)
		return func(args []string, s cli.Streams) error {
			if err := o.check(f, args); err != nil {
				return cli.Usage(err)
			}
			return o.run(f, args, s)
		}
	},
}

func (o *sendFlags) check(f *pflag.FlagSet, args []string) error {
	switch {
	case f.Changed("batch") && (o.id != "" || o.file != "" || len(args) > 0):
		return errors.New("--batch brings texts and ids of its own: leave TEXT, --file and --id out")
	case f.Changed("format") && o.batch == "":
		return errors.New("--format is about --batch: leave it out")
	case f.Changed("timeout") && !o.wait:
		return errors.New("--timeout is about waiting: add --wait")
	case o.quiet && o.wait:
		return errors.New("--quiet prints nothing, and --wait what was answered: leave one of them out")
	case o.Raw && !o.wait:
		return errors.New("--raw is about the reply that is waited for: add --wait")
	case f.Changed("expires") && !o.expires.After(time.Now()):
		return fmt.Errorf("--expires %s has passed: the entry would be set aside at once", &o.expires)
	case f.Changed("expires") && !o.expires.After(o.notBefore.Time):
		return errors.New("--expires comes before --not-before: the entry would be set aside at once")
	}
	return o.checkQuiet(&o.InboxFlags)
}

func (o *sendFlags) run(f *pflag.FlagSet, args []string, s cli.Streams) error {
	if !o.quiet {
		cli.SayFound(f, s)
	}
	messages, err := o.messages(args, s.In)
	if err != nil {
		return err
	}
	if err := makeFolder(o.Inbox, s); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	box, err := o.Open()
	if err != nil {
		return err
	}
	if err := knownChecks(box, messages); err != nil {
		return cli.Usage(err)
	}
	if o.wait && o.timeout <= 0 {
		if err := waitsForItself(box, "--wait", "leave --wait out"); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	receipts, err := box.AppendAll(context.Background(), messages, time.Duration(o.settle))
	for _, r := range receipts {
		s.Warn(r.Warnings)
	}
	if err == nil && o.wait {
		return o.await(box, receipts, s)
	}
	if err != nil && len(receipts) > 0 {
		err = fmt.Errorf("%d of %d entries were sent: %w", len(receipts), len(messages), err)
	}
	if errors.Is(err, inbox.ErrOtherText) {
		err = cli.Usage(err)
	}
	printed := o.printReceipts(receipts, s)
	if printed != nil {
		printed = fmt.Errorf("%s sent, or there already, and only printing that failed: %w", words.Count(len(receipts), "entry was", "entries were"), printed)
	}
	return wrap("send", errors.Join(err, printed))
}

func (o *sendFlags) printReceipts(receipts []inbox.Receipt, s cli.Streams) error {
	out, known := bufio.NewWriter(s.Out), 0
	for _, r := range receipts {
		switch {
		case o.quiet && !r.Appended:
			known++
			continue
		case o.quiet:
			continue
		case !r.Appended:
			s.Note("the entry %q is %s already: nothing was appended", r.ID, r.Found)
		}
		if err := o.Print(cli.Streams{Out: out}, r, r.ID); err != nil {
			return err
		}
	}
	if known > 0 {
		s.Note("%d of %s were there already, and not appended again", known, words.Count(len(receipts), "entry", "entries"))
	}
	return out.Flush()
}

func (o *sendFlags) messages(args []string, stdin *os.File) ([]inbox.Message, error) {
	meta, err := program.Metadata(o.meta, "")
	if err != nil {
		return nil, err
	}
	complete := func(m *inbox.Message) { // flags fill in what a message lacks
		if m.NotBefore.IsZero() {
			m.NotBefore = o.notBefore.Time
		}
		if m.Expires.IsZero() {
			m.Expires = o.expires.Time
		}
		own, _ := price.ParseLimits(m.Limits) // the limits of a line were checked
		m.Limits = own.Or(o.limits).JSON()
		if len(m.Checks) == 0 {
			m.Checks = o.checks
		}
		if m.Metadata == nil {
			m.Metadata = map[string]any{}
		}
		for name, value := range meta {
			if _, own := m.Metadata[name]; !own {
				m.Metadata[name] = value
			}
		}
	}
	if o.batch != "" {
		return readBatch(o.batch, o.format, stdin, complete)
	}
	m := inbox.Message{ID: o.id}
	if m.Text, err = program.ReadText(args, o.file, inbox.MaxLine, cli.Streams{In: stdin}); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	complete(&m)
	return []inbox.Message{m}, nil
}

// makeFolder makes the inbox's folder with mode 0700, and notes that, if the folder above exists. A dangling symbolic
// link does not count as a missing folder. Root first becomes the owner of the folder above, for good. The new
// folder then belongs to that user, and nothing the user put there can lead root elsewhere.
func makeFolder(inbox string, s cli.Streams) error {
	if strings.HasSuffix(inbox, string(filepath.Separator)) {
		return fmt.Errorf("%s is a folder: name the inbox's file in it", inbox)
	}
	dir, err := filepath.Abs(filepath.Dir(inbox))
	if err != nil {
		return err
	}
	if there, err := disk.Exists(dir); err != nil || there {
		return nil // opening the inbox reports what is wrong with the path
	}
	if _, err := disk.StatDir(filepath.Dir(dir)); err != nil {
		return nil // opening the inbox reports this as well
	}
	if strings.HasPrefix(filepath.Base(dir), "~") {
		return fmt.Errorf("the inbox's folder would be %s: only a shell turns ~ into your home directory, and none does in --inbox=~/...: write the path out, as $HOME/..., or make that folder first", dir)
	}
	if _, err := disk.BecomeOwner(filepath.Dir(dir)); err != nil {
		return err
	}
	above, err := disk.StatDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 && above.UID != 0 {
		return fmt.Errorf("the inbox's folder %s is missing, and root may not become user %d, whose it would be: make it as that user", dir, above.UID)
	}
	switch err := disk.MakeDir(dir); {
	case errors.Is(err, fs.ErrExist): // another process made it first
		return nil
	case err != nil:
		return fmt.Errorf("make the inbox's folder: %w", err)
	}
	s.Note("made the folder %s for the inbox", dir)
	return nil
}
