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

// Owner is who has an entry in flight. While it lives, nobody else settles the entry, takes it, gives it back or
// delivers it again.
type Owner struct {
	entry *inbox.Delivery
	inbox.Process
	// Life is whether the owner lives. Unknown (its process is in another PID namespace, or an earlier release noted
	// too little) counts as gone: a replaced container looks the same, and its queue has to go on.
	Life machine.Life
}

// OwnerOf returns the owner of an entry in flight. in is a transaction or a view.
func OwnerOf(in interface{ In(string) inbox.InSession }, d *inbox.Delivery) Owner {
	return ownerOf(d, EvidenceOf(d), in.In(d.SessionID).Known)
}

// LivingOwner returns the owner of the entry in flight, or nil if none lives.
func LivingOwner(in interface {
	In(string) inbox.InSession
	InFlight() *inbox.Delivery
}) *Owner {
	if d := in.InFlight(); d != nil {
		if o := OwnerOf(in, d); o.Life == machine.Alive {
			return &o
		}
	}
	return nil
}

// ownerOf returns the owner of a delivery with this evidence. session is the delivery's.
func ownerOf(d *inbox.Delivery, e Evidence, session func() inbox.Session) Owner {
	o := Owner{entry: d, Process: e.Process}
	if d.SessionID != "" {
		s := session()
		if o.PID == 0 && s.Process != (inbox.Process{}) {
			o.Process = s.Process
		}
		// The client has gone on to another session, for example after /clear. It may still pick up there an entry that
		// is to wake it.
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
	if o.entry.SessionID != "" {
		who = "session " + words.Short(o.entry.SessionID)
	}
	if o.PID != 0 {
		who = fmt.Sprintf("%s (process %d)", who, o.PID)
	}
	return fmt.Sprintf("the entry %s is with %s, which lives", words.Name(o.entry.ID(), o.entry.EntryID), who)
}

// MaySpeak returns why a process may give no verdict on the entry in flight, or nil. The nearest client above the
// process must have the entry. With person set, a person may speak too: a process with no client above it, and with no
// other session in its environment.
func MaySpeak(pid int, d *inbox.Delivery, sessions []inbox.Session, person bool) error {
	e, owner := EvidenceOf(d), 0
	life := machine.LifeOf(e.Boot, e.Namespace, e.PID, e.ProcessStart)
	if life == machine.Alive {
		owner = e.PID
	}
	client, session := callerOf(pid, owner, sessions)
	switch name := words.Name(d.ID(), d.EntryID); {
	case life == machine.Alive && client == owner, person && life.Ended():
		return nil
	case life == machine.Alive && client != 0:
		return fmt.Errorf("the entry %s in flight is another session's: process %d has it, and this is below process %d, a client of its own", name, owner, client)
	case !person && life == machine.Unknown:
		return fmt.Errorf("which process has the entry %s is not known", name)
	case !person:
		return fmt.Errorf("the entry %s in flight is another session's", name)
	case session != "" && session != d.SessionID:
		return fmt.Errorf("the entry %s in flight is another session's: session %s has it, and this is of session %s", name, words.Short(d.SessionID), words.Short(session))
	}
	return nil
}

// InSession reports whether a process is or was below a client, so that it is an agent's command and not a person's.
func InSession(pid int, sessions []inbox.Session) bool {
	client, session := callerOf(pid, 0, sessions)
	return session != "" || client != 0
}

// CheckCaller returns an error if a process belongs to a session that the inbox does not know.
func CheckCaller(pid int, sessions []inbox.Session) error {
	client, session := callerOf(pid, 0, sessions)
	if session == "" && client == 0 || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
		return session != "" && s.ID == session || s.PID == client && s.Life() == machine.Alive
	}) {
		return nil
	}
	return fmt.Errorf("this is of session %s, which does not work on this inbox", words.Short(session))
}

// WorkingDir returns the directory of the session that a process belongs to: the client's, or if that is unknown, this
// process's own. ok is false for a person's process.
func WorkingDir(pid int, sessions []inbox.Session) (dir string, ok bool) {
	client, session := callerOf(pid, 0, sessions)
	if client == 0 && session == "" {
		return "", false
	}
	if client != 0 {
		dir = machine.WorkingDir(client)
	}
	if dir == "" {
		dir, _ = os.Getwd() // without a path nothing is below it
	}
	return dir, true
}

// callerOf returns the session in a process's environment, "" for none, and the nearest client above it, or 0: the
// owner, the process of a known live session, or a program with a client's name. The search ends at the process that
// set the session in the environment, which may be a client under another file name, or a process that adopted what its
// client left behind.
func callerOf(pid, owner int, sessions []inbox.Session) (client int, session string) {
	session, _ = machine.Variable(pid, claude.SessionVariable)
	machine.Nearest(pid, func(p int) bool {
		if p == owner || agent.IsProgram(machine.Name(p)) || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
			return s.PID == p && s.Life() == machine.Alive
		}) {
			client = p
			return true
		}
		its, known := machine.Variable(p, claude.SessionVariable)
		return session != "" && known && its != session
	})
	return client, session
}
