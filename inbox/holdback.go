package inbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/journal"
	"heartbeat/internal/words"
)

// holding keeps lines that consumers have yet to be handed from being trimmed.
type holding struct {
	box    *Inbox
	kind   journal.Kind
	wanted func(line []byte) bool // what stays in any case

	consumers []string // by name
	// Of each of them one of these: all of the file is new to it, or what stands behind a line of
	// that hash, or where it is in another file, what is younger than a time.
	all   bool
	lines map[string]bool
	after time.Time
	names []string // those that are behind
	// stay is what is held back, by its hash, and whether a consumer has yet to be handed it; else
	// one finds its place by it.
	stay map[string]bool
}

// begin looks for the consumers. After it, keep is to be asked about each line of the file, in
// their order.
func (h *holding) begin() error {
	*h = holding{box: h.box, kind: h.kind, wanted: h.wanted, lines: map[string]bool{}, stay: map[string]bool{}}
	h.after = h.box.utcNow().AddDate(1000, 0, 0)
	if whenOf[h.kind] == nil { // nobody is handed its lines
		return nil
	}
	consumers, err := h.box.Consumers()
	if err != nil || len(consumers) == 0 {
		return err
	}
	f, err := openState(h.box.fileOf(h.kind))
	if f == nil {
		return err
	}
	for _, c := range consumers {
		p := c.place(h.kind)
		off, there, failed := p.In(f)
		err = errors.Join(err, failed)
		switch {
		case c.Err != nil || there && off == 0:
			h.all = true
		case there:
			h.lines[p.Line] = true
		case p.At.Before(h.after):
			h.after = p.At
		}
		if c.Err != nil || off < f.Info().Size {
			h.names = append(h.names, c.Name)
		}
		h.consumers = append(h.consumers, c.Name)
	}
	return errors.Join(err, f.Close())
}

// still reports whether no other consumer has come since.
func (h *holding) still() (bool, error) {
	if whenOf[h.kind] == nil {
		return true, nil
	}
	consumers, err := h.box.Consumers()
	for _, c := range consumers {
		if !slices.Contains(h.consumers, c.Name) {
			return false, err
		}
	}
	return true, err
}

// keep reports whether a line stays.
func (h *holding) keep(line []byte) bool {
	id := ""
	if len(h.lines) > 0 && !h.all {
		id = entryID(line)
		h.all = h.lines[id] // also the line itself, by which its consumer finds its place
	}
	if h.wanted(line) {
		return true
	}
	when := whenOf[h.kind]
	if when == nil {
		return false
	}
	at, is := when(line)
	if !h.all && (!is || !at.After(h.after)) {
		return false
	}
	if is {
		h.stay[entryID(line)] = !h.lines[id]
	}
	return true
}

func (h *holding) notes() []string {
	n := 0
	for _, unread := range h.stay {
		if unread {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of %s stay, since %s has yet to be handed them: heartbeat results --forget NAME forgets a consumer that is gone for good",
		words.Count(n, "line", "lines"), h.box.fileOf(h.kind), strings.Join(h.names, " or "))}
}
