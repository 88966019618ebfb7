package recover

import (
	"fmt"
	"os"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// MaySpeak returns why a process may not say what becomes of an entry in flight: the nearest
// client above it has to be the one that has the entry. person says that a person may, too:
// who has no client above, and whose environment names no other session.
func MaySpeak(pid int, d *inbox.Delivery, sessions []inbox.Session, person bool) error {
	e, owner := EvidenceOf(d), 0
	alive, known := host.Lives(e.Boot, e.Namespace, int(e.Client), e.ClientStart)
	if alive {
		owner = int(e.Client)
	}
	client := clientAbove(pid, owner, sessions)
	session, _ := host.Variable(pid, claude.SessionVariable)
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
	session, _ := host.Variable(pid, claude.SessionVariable)
	return session != "" || clientAbove(pid, 0, sessions) != 0
}

// WorksOn returns why a process may say nothing to an inbox at all: it is of a session that
// the inbox does not know.
func WorksOn(pid int, sessions []inbox.Session) error {
	session, _ := host.Variable(pid, claude.SessionVariable)
	client := clientAbove(pid, 0, sessions)
	if session == "" && client == 0 || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
		alive, _ := host.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
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
		dir = host.WorkingDir(client)
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
	session, _ := host.Variable(pid, claude.SessionVariable)
	host.Nearest(pid, func(p int) bool {
		if p == owner || agent.IsProgram(host.Name(p)) || slices.ContainsFunc(sessions, func(s inbox.Session) bool {
			alive, _ := host.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
			return alive && s.PID == p
		}) {
			client = p
			return true
		}
		its, known := host.Variable(p, claude.SessionVariable)
		return session != "" && known && its != session
	})
	return client
}
