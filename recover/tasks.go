package recover

import (
	"slices"
	"strings"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/flat"
	"heartbeat/internal/host"
)

// TaskWait is kept with a delivery whose turn ended and left tasks running in the
// background. The entry is answered once they ended and the session reported on them.
type TaskWait struct {
	Held bool
	// HeldBoot and HeldSince (nanoseconds since boot) are when that began.
	HeldBoot  string
	HeldSince int64
	// HeldReply is what the last turn of the entry said.
	HeldReply string
	// Tasks are those that ran so far, a JSON array as in a result, and RanBefore the
	// ids of those that ran when the entry was delivered: they are not its own.
	Tasks, RanBefore string
}

func (h TaskWait) encode(o *flat.Object) {
	o.Text("ran_before", h.RanBefore)
	if !h.Held {
		return
	}
	o.Bool("held", true)
	o.String("held_boot", h.HeldBoot)
	o.Int("held_since_boot_ns", h.HeldSince)
	o.String("held_reply", h.HeldReply)
	o.Raw("background_tasks", []byte(h.Tasks))
}

func taskWaitOf(m *flat.Members) TaskWait {
	return TaskWait{
		Held: m.Bool("held"), HeldBoot: m.String("held_boot"), HeldSince: m.Int("held_since_boot_ns"),
		HeldReply: m.String("held_reply"), Tasks: string(m.Raw("background_tasks")), RanBefore: m.String("ran_before"),
	}
}

// Running are those tasks that an entry waits for.
func (h TaskWait) Running(tasks []claude.Task) (running []claude.Task) {
	before := strings.Fields(h.RanBefore)
	for _, t := range tasks {
		if !slices.Contains(before, t.ID) {
			running = append(running, t)
		}
	}
	return running
}

// Wait holds the entry for tasks that run, and keeps what the turn said.
func (h TaskWait) Wait(running []claude.Task, reply string) TaskWait {
	if !h.Held {
		h.Held, h.HeldBoot, h.HeldSince = true, host.BootID(), host.SinceBoot()
	}
	h.HeldReply = reply
	all := []byte{'['}
	add := func(id, kind, text string) {
		var o flat.Object
		o.String("id", id)
		o.Text("type", kind)
		o.Text("description", text)
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, o.End()...)
	}
	known := map[string]bool{}
	for _, t := range flat.Value(h.Tasks).Items() {
		known[t.Get("id").Text()] = true
		add(t.Get("id").Text(), t.Get("type").Text(), t.Get("description").Text())
	}
	for _, t := range running {
		if !known[t.ID] {
			add(t.ID, t.Type, t.Text)
		}
	}
	h.Tasks = string(append(all, ']'))
	return h
}

// Over reports whether the entry has waited for that long, as far as can be told.
func (h TaskWait) Over(limit time.Duration) bool {
	return h.Held && (host.OtherBoot(h.HeldBoot) || time.Duration(host.SinceBoot()-h.HeldSince) >= limit)
}

// TellsOf reports whether the client sent this prompt to say that one of the tasks has
// ended.
func (h TaskWait) TellsOf(prompt string) bool {
	if !h.Held || !strings.HasPrefix(strings.TrimSpace(prompt), claude.TaskNotification) {
		return false
	}
	for _, t := range flat.Value(h.Tasks).Items() {
		if strings.Contains(prompt, "<task-id>"+t.Get("id").Text()+"</task-id>") {
			return true
		}
	}
	return false
}
