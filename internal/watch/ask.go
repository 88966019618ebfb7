package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/watch/look"
	"heartbeat/internal/words"
)

// ask begins a question about the chosen inbox or entry, if the key means one.
func (b *Board) ask(key string) {
	now, any := b.Inbox()
	if !any {
		return
	}
	var asking *Asking
	var refusal string
	switch key {
	case "p":
		asking = pause(now)
	case "r":
		asking, refusal = resume(now)
	case "c":
		asking, refusal = b.cancel(now)
	case "u":
		asking, refusal = b.requeue(now)
	case "a":
		asking, refusal = b.settle(now, "approve")
	case "x":
		asking, refusal = b.settle(now, "reject")
	default:
		return
	}
	switch {
	case refusal != "":
		b.say(true, refusal)
	case b.Doing != "":
		b.say(true, "wait until that is done: "+b.Doing)
	default:
		b.Asking, b.Said = asking, ""
	}
}

func pause(now look.Inbox) *Asking {
	return &Asking{"pause delivery in " + Short(now.Path()) + "?", act("pausing "+Short(now.Path()), now, "pause")}
}

func resume(now look.Inbox) (*Asking, string) {
	if now.Paused == nil && now.Backoff == nil {
		return nil, "delivery is not paused in " + Short(now.Path())
	}
	return &Asking{"resume delivery in " + Short(now.Path()) + "?", act("resuming "+Short(now.Path()), now, "resume")}, ""
}

// item is the entry that a key is about.
func (b *Board) item() (look.Item, bool) {
	if b.Life != nil {
		return b.Life.Item, true
	}
	return b.Page.Item()
}

func (b *Board) cancel(now look.Inbox) (*Asking, string) {
	item, any := b.item()
	name := nameOf(item)
	switch {
	case !any:
		return nil, "open an inbox and choose the entry to cancel"
	case item.Kind == look.InFlight:
		return nil, "a session works on " + name + ", so it cannot be taken back"
	case item.EntryID == "" && item.Kind == look.Waiting:
		return nil, "that line is too long to be named here: heartbeat peek --json has its entry_id, for heartbeat cancel"
	case item.Kind != look.Waiting && item.Kind != look.GivenBack && item.Kind != look.Scheduled:
		return nil, "only an entry that waits can be canceled"
	}
	which := item.EntryID
	if item.Kind != look.Scheduled { // others may have the same text
		which = fmt.Sprintf("%s@%d", item.EntryID, item.Start)
	}
	return &Asking{"cancel the entry " + name + "? (it becomes a dead letter, which u puts back)", act("canceling "+name, now, "cancel", which)}, ""
}

func (b *Board) requeue(now look.Inbox) (*Asking, string) {
	item, any := b.item()
	if !any || item.Kind != look.DeadLetter {
		return nil, "choose a dead letter to put back into the inbox"
	}
	name := nameOf(item)
	return &Asking{"put " + name + " back into the inbox?", act("requeueing "+name, now, "dead-letter", "requeue", item.Letter)}, ""
}

// settle answers the breakpoint that is chosen, or the only one there is.
func (b *Board) settle(now look.Inbox, verb string) (*Asking, string) {
	item, any := b.item()
	if !any || item.Kind != look.Question {
		var found []look.Item
		for _, q := range now.Held {
			if q.Effect == "" {
				return nil, words.Line(q.Rests())
			}
			found = append(found, look.Item{Kind: look.Question, RunDir: q.Dir, Effect: q.Effect, Text: q.Question})
		}
		switch {
		case len(found) == 1:
			item = found[0]
		case len(found) > 1:
			return nil, fmt.Sprintf("%d questions wait: open the inbox and choose one", len(found))
		case now.Asking() != nil:
			item = look.Item{Kind: look.Question}
		default:
			return nil, "nothing waits for an answer in " + Short(now.Path())
		}
	}
	if item.Effect == "" {
		return nil, "a session asks that: answer it at the session's own terminal"
	}
	question := fmt.Sprintf("%s %q? (this runs the code that the run %s names)", verb, words.Brief(item.Text), words.Line(item.RunDir))
	return &Asking{question, act(verb+": "+words.Brief(item.Text), now, "breakpoint", verb, item.Effect, "--run", item.RunDir)}, ""
}

// act is a verb of heartbeat about an inbox. The words stand behind their flags and --,
// so that none of them is taken for a flag.
func act(doing string, now look.Inbox, verb string, args ...string) Act {
	all := []string{verb}
	switch verb {
	case "dead-letter", "breakpoint":
		all, args = append(all, args[0]), args[1:]
	}
	words := args
	if verb == "breakpoint" {
		all, words = append(all, args[1], args[2]), args[:1]
	}
	all = append(all, "--inbox", now.Path())
	if len(words) > 0 {
		all = append(append(all, "--"), words...)
	}
	return Act{doing, now.Path(), all}
}

func nameOf(i look.Item) string { return words.Name(i.ID, i.EntryID) }

// runVerb runs a verb about an inbox, and returns what it prints. The error is what it complains
// with. For an inbox of another user, root has a process of its own: the verb makes its
// process that user for good, who may not look at the next inbox.
func runVerb(ctx context.Context, v cli.Verbs, inbox string, args []string) (said string, err error) {
	var out, complaint bytes.Buffer
	var status int
	if dir, e := disk.StatDir(filepath.Dir(inbox)); os.Geteuid() == 0 && e == nil && dir.UID != 0 {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find this command's own path: %w", err)
		}
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err = cmd.Run(); cmd.ProcessState == nil {
			return "", fmt.Errorf("run heartbeat %s: %w", args[0], err)
		}
		status = cmd.ProcessState.ExitCode()
	} else {
		status = v(args, cli.Streams{Command: "heartbeat", Out: &out, Err: &complaint})
	}
	if err := cli.Outcome(args[0], status, oneLine(complaint.String())); err != nil {
		return "", err
	}
	if out.Len() == 0 {
		return strings.TrimPrefix(oneLine(complaint.String()), "heartbeat: "), nil
	}
	return strings.TrimSpace(out.String()), nil
}

// oneLine is output on one line.
func oneLine(output string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(output), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
