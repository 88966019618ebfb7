package recover

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// Process identifies a process for good.
type Process struct {
	PID       int
	Start     int64 // see [host.ProcessStart]; 0 if it is not known
	Boot      string
	Namespace string
}

// ProcessOf is the process that has this number now. Without a number it is nobody.
func ProcessOf(pid int) Process {
	p := Process{PID: pid, Start: host.ProcessStart(pid), Boot: host.BootID()}
	if p.Start != 0 {
		p.Namespace = host.PIDNamespace()
	}
	return p
}

// Life is whether it runs. Of some only the number is known, which another process may have
// by now.
func (p Process) Life() host.Life {
	switch {
	case p.Start != 0:
		return host.LifeOf(p.Boot, p.Namespace, p.PID, p.Start)
	case host.OtherBoot(p.Boot):
		return host.Rebooted
	case p.PID != 0 && host.ProcessStart(p.PID) == 0:
		return host.Gone
	}
	return host.Unknown
}

// Process is the client's process that the entry was delivered to; until the client of a
// session host is started, it is the host's own.
func (e Evidence) Process() Process {
	return Process{PID: int(e.Client), Start: e.ClientStart, Boot: e.Boot, Namespace: e.Namespace}
}

// SetProcess makes a process of this boot the one that has the entry.
func (e *Evidence) SetProcess(p Process) {
	e.Client, e.ClientStart, e.Boot, e.Namespace = int64(p.PID), p.Start, p.Boot, p.Namespace
}

// Owner is who has an entry in flight. As long as it lives, nobody else settles the entry,
// takes it, delivers it again or gives it back.
type Owner struct {
	EntryID string
	ID      string
	Session string
	Process
	// Life is whether the owner lives. One of which that cannot be told (Unknown: its process
	// is in another namespace, or an earlier release noted less of it) counts as gone: a
	// container that was replaced looks the same, and its queue has to go on.
	Life host.Life
}

// sessions are those that a transaction or a view remembers.
type sessions interface {
	Sessions() ([]inbox.Session, error)
}

// OwnerOf is the owner of an entry in flight.
func OwnerOf(in sessions, d *inbox.Delivery) Owner {
	e := EvidenceOf(d)
	o := Owner{EntryID: d.EntryID, ID: d.ID(), Session: d.SessionID, Process: e.Process()}
	all, _ := in.Sessions() // whoever needs them says why they cannot be read
	for _, s := range all {
		if s.ID != d.SessionID || s.ID == "" {
			continue
		}
		if o.PID == 0 {
			o.Process = Process{s.PID, s.ProcessStart, s.Boot, s.Namespace}
		}
		// The client goes on with another session, such as after /clear. An entry that is
		// to wake it may still be taken up there.
		if s.EndedAt != nil && s.PID == o.PID && (!e.Woken || e.Bound) {
			o.Life = host.Gone
			return o
		}
	}
	o.Life = o.Process.Life()
	return o
}

// String says who has the entry, for people.
func (o Owner) String() string {
	who := "a session"
	if o.Session != "" {
		who = "session " + words.Short(o.Session)
	}
	if o.PID != 0 {
		who = fmt.Sprintf("%s (process %d)", who, o.PID)
	}
	return fmt.Sprintf("the entry %s is with %s, which lives", words.Name(o.ID, o.EntryID), who)
}
