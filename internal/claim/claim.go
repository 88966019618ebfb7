// Package claim reserves an inbox for one worker, a launcher or a session host: no other session works on the inbox, and
// no stranger can replace its queue. It is not part of package recover, which the hook links, so that the hook stays lean.
package claim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// BusyError is the sentence about who else works on the inbox.
type BusyError struct{ why string }

// Error implements error.
func (e BusyError) Error() string { return e.why }

const lockPatience = 50 * time.Millisecond // how long another worker may take to end

// Take keeps other workers off the inbox until the lock is released or its holder dies. The error is a [BusyError] if
// another worker has the lock. The process id in the file is for people.
func Take(box *inbox.Inbox) (*disk.Lock, error) {
	path := box.LaunchLock()
	lock, err := disk.AcquireLock(context.Background(), path, lockPatience)
	if err == nil {
		err = lock.Sign(strconv.Itoa(os.Getpid()) + "\n")
	}
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, BusyError{"another launcher or session host (" + holder(path) + ") works on this inbox already"}
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the inbox: %w", err), lock.Release())
	}
	return lock, nil
}

// Lost returns an error once the lock no longer keeps other workers off the inbox, as after somebody removed or moved its
// folder. It returns nil if that cannot be determined, and for a nil lock.
func Lost(box *inbox.Inbox, lock *disk.Lock) error {
	if lock == nil || !errors.Is(lock.Check(), disk.ErrLockGone) {
		return nil
	}
	return fmt.Errorf("this process no longer keeps others off %s, since the folder, or the .launch-lock in it, was moved, removed or mounted over: "+
		"see that the folder is in its place, and start again", box.Dir())
}

func holder(path string) string {
	pid := machine.LockHolder(path)
	if pid <= 0 {
		text, _ := disk.ReadState(path, 4096) // without a number no process is named
		first, _, _ := strings.Cut(string(text), "\n")
		pid, _ = strconv.Atoi(first)
	}
	if pid <= 0 {
		return "a process that cannot be named"
	}
	return "process " + strconv.Itoa(pid)
}

const deathPatience = 3 * time.Second // how long a session may take to die after its worker was killed

// CheckFree returns a [BusyError] if the owner of an entry in flight is alive.
func CheckFree(ctx context.Context, box *inbox.Inbox) error {
	deadline := time.After(deathPatience)
	for late := false; ; {
		owner, err := ownerOf(box)
		switch {
		case err != nil || owner == nil || owner.Life != machine.Alive:
			return err
		case late:
			return BusyError{owner.String()}
		}
		select {
		case <-machine.WatchProcess(owner.PID).Died():
		case <-deadline:
			late = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ownerOf returns the owner of the entry in flight, or nil if no entry is in flight.
func ownerOf(box *inbox.Inbox) (owner *recovery.Owner, err error) {
	v, err := box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		o := recovery.OwnerOf(v, d)
		owner = &o
	}
	return owner, nil
}

// CheckRights refuses an inbox whose state strangers could replace. If they can only write to the inbox file, and so
// instruct the agent, it calls warn. meant ends these sentences: it names the flag that allows it.
func CheckRights(box *inbox.Inbox, meant string, warn func(string)) error {
	dir, err := disk.StatDir(box.Dir())
	if err != nil {
		return err
	}
	if me := uint32(os.Geteuid()); dir.UID != me && dir.UID != 0 {
		return fmt.Errorf("%s belongs to user %d, who can instruct the agent and forge its state, and this is user %d: "+
			"work as that user%s", box.Dir(), dir.UID, me, meant)
	}
	if disk.OthersWrite(dir) {
		return fmt.Errorf("others may make and replace files in %s (mode %04o), and so instruct the agent and forge its state: "+
			"take the right away (chmod go-w)%s", box.Dir(), dir.Mode, meant)
	}
	file, err := disk.StatFile(box.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && disk.OthersWrite(file) {
		warn(fmt.Sprintf("others may write to %s (mode %04o), and so instruct the agent: take the right away (chmod go-w)%s",
			box.Path(), file.Mode, meant))
	}
	return err
}
