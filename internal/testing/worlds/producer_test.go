package worlds_test

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// producer writes a line in two parts beside a step of ours.
type producer struct {
	w     *world
	s     step
	seen  int  // changes of the disk, counted for a send from its commit on
	whole bool // the line's rest came with the step, too
	name  string
	err   error
}

// needsWhole are the steps that find no unfinished line: a send waits until it is
// whole, or takes it for one, and editors leave a line of others alone.
func needsWhole(kind string) bool {
	return isSend(kind) || !slices.Contains([]string{"chmod", "rotate"}, kind) && others[kind] != nil
}

func isSend(kind string) bool {
	return slices.Contains([]string{"send", "send what expires", "batch", "schedule"}, kind)
}

func (p *producer) observe(op disk.Op) error {
	if p.seen == 0 && isSend(p.s.kind) && filepath.Base(op.Path) != ".inbox-journal" {
		return nil // it has not looked at the file's end yet
	}
	p.seen++
	if p.err == nil && p.seen == p.s.half && p.w.half == "" {
		p.name = p.w.name()
		p.w.half, p.w.written = p.name, 1+p.s.pick%len(p.name)
		p.err = p.w.append(p.name[:p.w.written])
	}
	if p.err == nil && p.seen == p.s.rest && p.name != "" && adds(p.s.kind) {
		p.whole = true
		p.err = p.w.append(p.name[p.w.written:] + "\n")
		p.w.half = ""
	}
	return nil
}

// adds reports whether a step only adds entries: another one may take a line that
// became whole beside it.
func adds(kind string) bool {
	return isSend(kind) || kind == "requeue" || kind == "an hour goes by"
}

// beside are the models that the step may have left, with what the producer wrote
// meanwhile: behind all that was there before.
func (p *producer) beside(after model) (all []model) {
	if !p.whole {
		if p.name == "" {
			return []model{after}
		}
		return []model{after, p.unpromoted(after.clone())} // promoting may have been put off
	}
	behind := 0
	for i, n := range after.Queued {
		if slices.Contains(p.w.m.Queued, n) {
			behind = i + 1
		}
	}
	for i := behind; i <= len(after.Queued); i++ {
		m := after.clone()
		m.Queued = slices.Insert(m.Queued, i, p.name)
		all = append(all, m)
	}
	return all
}

// unpromoted has what came due with this step still wait.
func (p *producer) unpromoted(m model) model {
	m.Scheduled = slices.Clone(p.w.m.Scheduled)
	m.Queued = slices.DeleteFunc(m.Queued, func(n string) bool {
		return slices.ContainsFunc(m.Scheduled, func(e timed) bool { return e.Text == n })
	})
	return m
}

// writeRest is the producer going on with its line.
func (w *world) writeRest() error {
	rest := w.half[w.written:] + "\n"
	w.m.Queued = append(w.m.Queued, w.half)
	w.half = ""
	return w.append(rest)
}

// everything is what changes a disk: from a kill on nothing does.
var everything = []disk.Kind{
	disk.OpCreate, disk.OpWrite, disk.OpTruncate, disk.OpSync, disk.OpSyncDir, disk.OpRename, disk.OpRemove, disk.OpTouch, disk.OpPunch,
}

// kill has every change of the disk fail from the step's kill on. Of an append
// that is torn, half is made.
func kill(s step) disk.Observer {
	if s.kill == 0 {
		return func(disk.Op) error { return nil }
	}
	seen := 0
	dead := crash.FailFrom(s.kill, unix.EIO, everything...)
	return func(op disk.Op) error {
		seen++
		err := dead(op)
		if seen == s.kill && s.torn && op.Kind == disk.OpWrite && op.Offset < 0 {
			return &disk.Torn{N: len(op.Data) / 2, Then: func() error { return unix.EIO }}
		}
		return err
	}
}
