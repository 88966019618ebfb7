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

// actions are what keys ask, each of the chosen inbox: a question, or why there is none.
var actions = map[string]func(*Board, look.Inbox) (asking *Asking, refusal string){
	"p": func(_ *Board, now look.Inbox) (*Asking, string) {
		return delivery(now, "pause", "pausing"), ""
	},
	"r": func(_ *Board, now look.Inbox) (*Asking, string) {
		if now.Paused == nil && now.Backoff == nil {
			return nil, "delivery is not paused in " + Short(now.Path())
		}
		return delivery(now, "resume", "resuming"), ""
	},
	"c": (*Board).cancel,
	"u": (*Board).requeue,
	"a": func(b *Board, now look.Inbox) (*Asking, string) { return b.settle(now, "approve") },
	"x": func(b *Board, now look.Inbox) (*Asking, string) { return b.settle(now, "reject") },
}

// ask begins a question about the chosen inbox or entry, if the key means one.
func (b *Board) ask(key string) {
	now, any := b.Inbox()
	if actions[key] == nil || !any {
		return
	}
	switch asking, refusal := actions[key](b, now); {
	case refusal != "":
		b.say(true, refusal)
	case b.Doing != "":
		b.say(true, "wait until that is done: "+b.Doing)
	default:
		b.Asking, b.Said = asking, ""
	}
}

func delivery(now look.Inbox, verb, doing string) *Asking {
	return offers(verb+" delivery in "+Short(now.Path())+"?", doing+" "+Short(now.Path()), now, nil, verb)
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
	return offers("cancel the entry "+name+"? (it becomes a dead letter, which u puts back)", "canceling "+name, now, []string{which}, "cancel"), ""
}

func (b *Board) requeue(now look.Inbox) (*Asking, string) {
	item, any := b.item()
	if !any || item.Kind != look.DeadLetter {
		return nil, "choose a dead letter to put back into the inbox"
	}
	name := nameOf(item)
	return offers("put "+name+" back into the inbox?", "requeueing "+name, now, []string{item.Letter}, "dead-letter", "requeue"), ""
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
	return offers(question, verb+": "+words.Brief(item.Text), now, []string{item.Effect}, "breakpoint", verb, "--run", item.RunDir), ""
}

// offers asks whether a verb of heartbeat is to be run on an inbox. The words stand behind its
// flags and --, so that none of them is taken for a flag.
func offers(question, doing string, now look.Inbox, words []string, verb ...string) *Asking {
	args := append(verb, "--inbox", now.Path())
	if words != nil {
		args = append(append(args, "--"), words...)
	}
	return &Asking{question, Act{doing, now.Path(), args}}
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
