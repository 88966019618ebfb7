package meter

import (
	"bytes"
	"fmt"
	"strconv"

	"heartbeat/internal/disk"
)

// A file has two slots, which are written in turn. A write that is cut off leaves the
// other slot, and so does one that a reader comes across. Replacing the file would take
// thirty times as long: some file systems then begin to write out its bytes.
const slotSize = 512 << 10

// slot is the content of one.
type slot struct {
	number int64 // of the write, 0 for none
	body   []byte
}

// A slot begins with a line of three hexadecimal numbers: the sum of what follows it,
// the number of the write, and the length of what follows.
const headSize = 16 + 1 + 16 + 1 + 8 + 1

type head struct {
	sum          uint64
	number, size int64
}

func appendHead(b []byte, h head) []byte {
	b = append(appendHex(b, h.sum, 16), ' ')
	b = append(appendHex(b, uint64(h.number), 16), ' ')
	return append(appendHex(b, uint64(h.size), 8), '\n')
}

func appendHex(b []byte, n uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[n>>(4*i)&15])
	}
	return b
}

// newest is the slot that was written last and is whole. Where writers were faster than
// this reader, both slots have changed, and it looks again.
func newest(f *disk.File) (s slot) {
	for heads := [2]head{}; s.number == 0; {
		now := [2]head{readHead(f, 0), readHead(f, 1)}
		if now == heads {
			break
		}
		heads = now
		last := int64(0)
		if heads[1].number > heads[0].number {
			last = 1
		}
		if s = readSlot(f, last, heads[last]); s.number == 0 {
			s = readSlot(f, 1-last, heads[1-last])
		}
	}
	return s
}

// readHead is zero where a slot does not begin.
func readHead(f *disk.File, i int64) head {
	var b [headSize]byte
	if n, _ := f.ReadAt(b[:], i*slotSize); n < headSize || b[headSize-1] != '\n' {
		return head{}
	}
	sum, err1 := strconv.ParseUint(string(b[:16]), 16, 64)
	number, err2 := strconv.ParseInt(string(b[17:33]), 16, 64)
	size, err3 := strconv.ParseInt(string(b[34:42]), 16, 64)
	if err1 != nil || err2 != nil || err3 != nil || number < 1 || size < 1 || size > slotSize-headSize {
		return head{}
	}
	return head{sum, number, size}
}

func readSlot(f *disk.File, i int64, h head) slot {
	if h.number == 0 {
		return slot{}
	}
	b := make([]byte, h.size)
	if n, _ := f.ReadAt(b, i*slotSize+headSize); n < len(b) || sumOf(h.number, b) != h.sum {
		return slot{}
	}
	return slot{h.number, b}
}

// sumOf tells a whole slot from a torn one.
func sumOf(number int64, body []byte) uint64 {
	h := uint64(offset) ^ uint64(number)
	for _, c := range body {
		h = (h ^ uint64(c)) * multiplier
	}
	return h
}

// state is what a slot has of a session, nil for nothing.
func (s slot) state(session string) *State {
	if s.number == 0 {
		return nil
	}
	state := decode(s.body)
	if state == nil || state.Session != session {
		return nil
	}
	return state
}

// replace writes what follows this slot, unless it is the same.
func (s slot) replace(f *disk.File, body []byte) error {
	if bytes.Equal(s.body, body) {
		return nil
	}
	if len(body) > slotSize-headSize {
		return fmt.Errorf("write %s: the count takes %d bytes, and may have no more than %d bytes", f.Path(), len(body), slotSize-headSize)
	}
	number := s.number + 1
	b := appendHead(make([]byte, 0, headSize+len(body)), head{sumOf(number, body), number, int64(len(body))})
	return f.WriteAt(append(b, body...), number%2*slotSize)
}
