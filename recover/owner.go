package recover

import (
	"fmt"
	"os"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// Process identifies a process for good.
type Process struct {
	PID       int
	Start     int64 // see [machine.ProcessStart]; 0 if it is not known
	Boot      string
	Namespace string
}

// ProcessOf is the process that has this number now. Without a number it is nobody.
func ProcessOf(pid int) Process {
	p := Process{PID: pid, Start: machine.ProcessStart(pid), Boot: machine.BootID()}
	if p.Start != 0 {
		p.Namespace = machine.PIDNamespace()
	}
	return p
}

// Life is whether it runs. Of some only the number is known, which another process may have
// by now.
func (p Process) Life() machine.Life {
	switch {
	case p.Start != 0:
		return machine.LifeOf(p.Boot, p.Namespace, p.PID, p.Start)
	case machine.OtherBoot(p.Boot):
		return machine.Rebooted
	case p.PID != 0 && machine.ProcessStart(p.PID) == 0:
		return machine.Gone
	}
	return machine.Unknown
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
	Life machine.Life
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
			o.Life = machine.Gone
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

// MaySpeak returns why a process may not say what becomes of an entry in flight: the nearest
// client above it has to be the one that has the entry. person says that a person may, too:
// who has no client above, and whose environment names no other session.
func MaySpeak(pid int, d *inbox.Delivery, sessions []inbox.Session, person bool) error {
	e, owner := EvidenceOf(d), 0
	alive, known := machine.Lives(e.Boot, e.Namespace, int(e.Client), e.ClientStart)
	if alive {
		owner = int(e.Client)
	}
	client := clientAbove(pid, owner, sessions)
	session, _ := machine.Variable(pid, claude.SessionVariable)
	switch name := words.Name(d.ID(), d.EntryID); {
	case alive && client == owner, person && known && !alive:
		return nil
	case alive && client != 0:
		return fmt.Errorf("the entry %s in flight is another session's: process %d has it, and this is below process %d, a client of its own", name, owner, client)
	case !person && !known:
		return fmt.Errorf("which process has the entry %s is not known", name)
	case !person:
		return fmt.Errorf("the entry %s in flight is another session's", name)
	case session != "" && session != d.SessionID:
		return fmt.Errorf("the entry %s in flight is another session's: session %s has it, and this is of session %s", name, words.Short(d.SessionID), words.Short(session))
	}
	return nil
}

// InSession reports whether a process is below a client, or was: an agent's command, and no
// person's.
func InSession(pid int, sessions []inbox.Session) bool {
	session, _ := machine.Variable(pid, claude.SessionVariable)
	return session != "" || clientAbove(pid, 0, sessions) != 0
}

// WorksOn returns why a process may say nothing to an inbox at all: it is of a session that
// the inbox does not know.
func WorksOn(pid int, sessions []inbox.Session) error {
	session, _ := machine.Variable(pid, claude.SessionVariable)
	client := clientAbove(pid, 0, sessions)
	if session == "" && client == 0 || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
		alive, _ := machine.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
		return session != "" && s.ID == session || alive && s.PID == client
	}) {
		return nil
	}
	return fmt.Errorf("this is of session %s, which does not work on this inbox", words.Short(session))
}

// WorkingDir is the directory that the session of a process works in: its client's, or, where
// that is not known, this process's own. ok is false for a person's process.
func WorkingDir(pid int, sessions []inbox.Session) (dir string, ok bool) {
	if !InSession(pid, sessions) {
		return "", false
	}
	if client := clientAbove(pid, 0, sessions); client != 0 {
		dir = machine.WorkingDir(client)
	}
	if dir == "" {
		dir, _ = os.Getwd() // "" with an error, and nothing is below that
	}
	return dir, true
}

// clientAbove is the nearest client above a process, 0 for none: the one that has the entry,
// one whose hook told of a session, or one that is called so. The search ends where the
// session in the environment comes from: a client whose file has another name, or whoever
// took over a process that its client left behind.
func clientAbove(pid, owner int, sessions []inbox.Session) (client int) {
	session, _ := machine.Variable(pid, claude.SessionVariable)
	machine.Nearest(pid, func(p int) bool {
		if p == owner || agent.IsProgram(machine.Name(p)) || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
			alive, _ := machine.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
			return alive && s.PID == p
		}) {
			client = p
			return true
		}
		its, known := machine.Variable(p, claude.SessionVariable)
		return session != "" && known && its != session
	})
	return client
}
