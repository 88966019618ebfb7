package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"heartbeat/internal/cli"
	"heartbeat/internal/words"
)

// ask begins the key's question about the chosen inbox or entry. The verb decides whether the action is possible.
func (b *Board) ask(key string) {
	now, found := b.Inbox()
	if !found {
		return
	}
	item, _ := b.Page.Item()
	if b.Life != nil {
		item = b.Life.Item
	}
	place, name := names(b.Picture)(now.Path()), words.Name(item.ID, item.EntryID)
	question, refusal, verb, args := "", "", "", []string(nil)
	switch key {
	case "p":
		question, verb = "pause delivery in "+place+"?", "pause"
	case "r":
		question, verb = "resume delivery in "+place+"?", "resume"
	case "c":
		question, verb = "cancel the entry "+name+"? (it becomes a dead letter, which u puts back)", "cancel"
		args = []string{"--", item.EntryID}
		if item.Kind == Waiting || item.Kind == GivenBack { // others may have the same text
			args[1] = fmt.Sprintf("%s@%d", item.EntryID, item.Start)
		}
		if item.EntryID == "" {
			refusal = "choose an entry that waits; of a line that is too long to be named here, heartbeat peek --json has the entry_id"
		}
	case "u":
		question, verb, args = "put "+name+" back into the inbox?", "dead-letter requeue", []string{"--", item.Letter}
		if item.Letter == "" {
			refusal = "choose a dead letter to put back into the inbox"
		}
	case "a", "x":
		verb = map[string]string{"a": "breakpoint approve", "x": "breakpoint reject"}[key]
		item, refusal = asked(now, item, place)
		question = fmt.Sprintf("%s %q? (this runs the code that the run %s names)", strings.TrimPrefix(verb, "breakpoint "), words.Brief(item.Text), words.Line(item.RunDir))
		args = []string{"--run", item.RunDir, "--", item.Effect}
	default:
		return
	}
	switch {
	case refusal != "":
		b.say(true, refusal)
	case b.Doing != "":
		b.say(true, "wait until that is done: "+b.Doing)
	default:
		b.Asking, b.Said = &Asking{question, "heartbeat " + verb + " in " + place, commandLine(now.Path(), verb, args...)}, ""
	}
}

// commandLine returns what follows heartbeat on the command line of a verb. Before arguments stands --, so that none is
// taken for a flag.
func commandLine(inbox, verb string, rest ...string) []string {
	return slices.Concat(strings.Fields(verb), []string{"--inbox", inbox}, rest)
}

// asked returns the question to answer, the chosen or the only one, or explains why there is none.
func asked(now Inbox, item Item, place string) (_ Item, refusal string) {
	if item.Kind != Question {
		all := Asked(now)
		if len(all) != 1 {
			return item, words.Count(len(all), "question waits", "questions wait") + " in " + place + ": open the inbox and choose one"
		}
		item = all[0]
	}
	switch {
	case item.RunDir == "":
		return item, "a session asks that: answer it at the session's own terminal"
	case item.Effect == "":
		return item, words.Line(item.Text)
	}
	return item, ""
}

// runVerb runs a verb of heartbeat and returns its output. The error is the verb's complaint. The verb gets its own
// process: started by root, it becomes the inbox's owner for good, who may not be able to read the next inbox.
func runVerb(ctx context.Context, args []string) (output string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this command's own path: %w", err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = "heartbeat" // under the name heartbeat-watch the command takes each verb for an argument of watch
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a verb finishes even if the terminal goes away
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err = cmd.Run(); cmd.ProcessState == nil {
		return "", fmt.Errorf("run heartbeat %s: %w", args[0], err)
	}
	if err := cli.Outcome(args[0], cmd.ProcessState.ExitCode(), oneLine(complaint.String())); err != nil {
		return "", err
	}
	if out.Len() == 0 {
		return strings.TrimPrefix(oneLine(complaint.String()), "heartbeat: "), nil
	}
	return strings.TrimSpace(out.String()), nil
}

func oneLine(output string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(output), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
