package crash

import (
	"slices"

	"heartbeat/internal/disk"
)

// inode is the content of one file: durable as of the last sync, and current with all
// pending changes.
type inode struct {
	link    string // the target, for a symbolic link
	durable []byte
	pending []change
	current []byte
}

// change is a write of data at off, or, with isTruncate, the new length off.
type change struct {
	isTruncate bool
	off        int
	data       []byte
}

// fate is what a power loss keeps of a change: data[from:to], and the file's new
// length if length is set. If the file grew, the bytes that were lost are zero.
type fate struct {
	from, to int
	length   bool
}

func newFile(data []byte) *inode {
	return &inode{durable: data, current: slices.Clone(data)}
}

func (f *inode) String() string {
	if f.link != "" {
		return "-> " + f.link
	}
	return string(f.current)
}

func (f *inode) apply(op disk.Op) {
	if op.Kind == disk.OpSync {
		f.durable, f.pending = slices.Clone(f.current), nil
		return
	}
	c := change{op.Kind == disk.OpTruncate, int(op.Offset), slices.Clone(op.Data)}
	if op.Kind == disk.OpPunch {
		c.data = make([]byte, min(int(op.Length), len(f.current)))
	}
	if !c.isTruncate && op.Offset < 0 {
		c.off = len(f.current)
	}
	f.pending = append(f.pending, c)
	f.current = c.apply(f.current, kept(c))
}

// settle returns the content after a power loss, in which choose decides the fate of
// each pending change, in order.
func (f *inode) settle(pending []change, choose func(change) fate) []byte {
	content := slices.Clone(f.durable)
	for _, c := range pending {
		content = c.apply(content, choose(c))
	}
	return content
}

func (c change) apply(content []byte, fate fate) []byte {
	if c.isTruncate {
		if fate.length {
			content = resize(content, c.off)
		}
		return content
	}
	end := 0
	if fate.to > fate.from {
		end = c.off + fate.to
	}
	if fate.length {
		end = c.off + len(c.data)
	}
	content = resize(content, max(len(content), end))
	if fate.to > fate.from {
		copy(content[c.off+fate.from:], c.data[fate.from:fate.to])
	}
	return content
}

// resize cuts the content, or fills it up with zeros.
func resize(content []byte, size int) []byte {
	if size <= len(content) {
		return content[:size:size]
	}
	return append(content, make([]byte, size-len(content))...)
}

func kept(c change) fate      { return fate{0, len(c.data), true} }
func dropped(change) fate     { return fate{} }
func lengthAlone(change) fate { return fate{length: true} }
