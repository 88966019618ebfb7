package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/words"
)

// What ended the client, as reports spell it.
const (
	endedItself    = "exit"
	endedByCancel  = "cancel"
	endedByTimeout = "timeout"
	endedByStall   = "stall"
	endedByLimit   = "limit"
	endedByLoss    = "inbox-lost"    // its inbox was removed, moved or replaced
	endedLingering = "exit-deadline" // it had finished and did not exit
)

// Facts are what is known of a session at its end. Its host, or a finisher, decides the outcome from nothing else.
type Facts struct {
	folder.State
	HostDied  bool  // the host was killed, and a finisher decides
	MemoryMax int64 // the limit of the client's memory in bytes, 0 for none
}

func (f Facts) answered() bool { return f.Entries.Answered > 0 && f.Entries.Unanswered() == 0 }

// Decision is a session's outcome.
type Decision struct {
	State folder.Status
	Error string // why the session is not completed, in one sentence
	Code  int    // the exit status for the report: the client's, 1 if it had none
}

// Decide returns a session's outcome. A request to cancel outranks everything else. Otherwise a session that could use
// the tools it requires is completed if, and only if, every entry was answered, whatever became of its processes.
func Decide(f Facts) Decision {
	d := Decision{Code: f.code()}
	switch {
	case f.Cancel != nil:
		d.State, d.Error = folder.Cancelled, "cancelled by "+f.Cancel.By
		if f.answered() {
			d.Error += ", after every prompt had been answered"
		}
	case f.answered() && f.toolless() != "":
		d.State, d.Error = folder.Failed, f.toolless()+" (--require-tools); "+f.fates()
	case f.answered():
		d.State = folder.Completed
	case f.RateLimit != nil:
		d.State, d.Error = folder.RateLimited, f.RateLimit.Detail
		if at := f.RateLimit.ResetsAt; at != nil {
			d.Error += fmt.Sprintf(" (resets at %s)", at.UTC().Format(time.RFC3339))
		}
	case f.Ended == endedByTimeout:
		d.State, d.Error = folder.Timeout, f.with("the session was ended after "+f.EndedAfter+" (--timeout)")
	case f.Broken != "":
		d.State, d.Error = folder.Failed, f.Broken
	default:
		d.State, d.Error = folder.Failed, f.with(f.failure())
	}
	return d
}

// toolless returns why the session could not use the tools that it requires, "" if it could or requires none.
func (f Facts) toolless() string {
	t := f.Tools
	switch {
	case t == nil || !t.Required || t.Configured == 0:
		return ""
	case !t.Listed:
		return "the client never asked for the list of the guild's tools"
	case t.Calls > 0 && t.Failed == t.Calls:
		return failedCalls(t)
	}
	return ""
}

func failedCalls(t *folder.Tools) string {
	some := fmt.Sprintf("%d of %s", t.Failed, words.Count(int(t.Calls), "call", "calls"))
	switch {
	case t.Failed == 0:
		return ""
	case t.Calls == 1:
		some = "the only call"
	case t.Failed == t.Calls:
		some = fmt.Sprintf("all %d calls", t.Calls)
	}
	return fmt.Sprintf("%s of the guild's tools failed, at last %s", some, t.LastError)
}

// code returns the client's exit status, 1 if a signal ended it.
func (f Facts) code() int {
	switch {
	case f.Exit != nil:
		return f.Exit.Code
	case f.answered() && f.Cancel == nil:
		return 0
	}
	return 1
}

// outOfMemory are the signals that end a client that gets no more memory.
var outOfMemory = []string{"SIGABRT", "SIGSEGV", "SIGBUS", "SIGTRAP", "SIGILL"}

func (f Facts) failure() string {
	switch {
	case f.HostDied:
		return "the session's host was killed"
	case f.Ended == endedByStall:
		return "the session was ended after " + f.EndedAfter + " without progress (--stall-action cancel)"
	case f.Ended == endedByLimit:
		return "claude was ended at a limit of its entry, after " + f.EndedAfter
	case f.Ended == endedLingering:
		return "claude did not exit within " + f.EndedAfter + " after its result, and was ended"
	case f.Exit == nil && f.Ended != "": // in a terminal
		return "claude has ended"
	case f.Exit == nil:
		return "claude was not started"
	case f.Exit.Signal != "" && f.MemoryMax > 0 && slices.Contains(outOfMemory, f.Exit.Signal):
		return fmt.Sprintf("claude was ended by %s, as it is when %d bytes of memory are too few for it (--memory-max)", f.Exit.Signal, f.MemoryMax)
	case f.Exit.Signal != "":
		return "claude was ended by " + f.Exit.Signal
	}
	text := fmt.Sprintf("claude exited with code %d", f.Exit.Code)
	if said := strings.TrimSpace(f.Stderr); said != "" && f.Exit.Code != 0 && f.Result == nil { // the last line says why
		text += ": " + words.Brief(said[strings.LastIndexByte(said, '\n')+1:])
	}
	return text
}

// with appends the client's result, if it is an error, and the fates of the entries.
func (f Facts) with(text string) string {
	all := []string{text}
	if r := f.Result; r != nil && r.IsError {
		said := "its result is an error"
		if r.Subtype != "" && r.Subtype != "success" {
			said += " (" + r.Subtype + ")"
		}
		if f.ErrorText != "" {
			said += ": " + words.Line(f.ErrorText)
		}
		all = append(all, said)
	}
	return strings.Join(append(all, f.fates()), "; ")
}

// fates describes how many entries were not answered, and where they are.
func (f Facts) fates() string {
	e := f.Entries
	total := e.Answered + e.Unanswered()
	if total == 0 {
		return "no prompt was answered"
	}
	return fmt.Sprintf("%d of %s answered", e.Answered, words.Count(total, "prompt", "prompts")) +
		e.Rest([4]string{"in flight", "waiting", "set aside as dead letters", "replied to without opening the file that the text was in"})
}
