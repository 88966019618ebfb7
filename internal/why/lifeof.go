package why

import (
	"heartbeat/inbox"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

// LifeOf asks the kernel whether a session's process lives.
func LifeOf(s inbox.Session) Life {
	return LifeOfProcess(s.Boot, s.Namespace, s.PID, s.ProcessStart)
}

// LifeOfProcess asks for a process by its boot, namespace, id and start time.
func LifeOfProcess(boot, namespace string, pid int, start int64) Life {
	alive, known := host.Lives(boot, namespace, pid, start)
	switch {
	case alive:
		return Alive
	case !known:
		return Unknown
	case boot != "" && boot != host.BootID():
		return Rebooted
	}
	return Gone
}

// LifeOfClient asks for the process that an entry was delivered to. For some deliveries
// only its id is known, which another process may have by now.
func LifeOfClient(e recovery.Evidence) Life {
	switch {
	case e.ClientStart != 0:
		return LifeOfProcess(e.Boot, e.Namespace, int(e.Client), e.ClientStart)
	case e.Boot != "" && e.Boot != host.BootID():
		return Rebooted
	case e.Client != 0 && host.ProcessStart(int(e.Client)) == 0:
		return Gone
	}
	return Unknown
}
