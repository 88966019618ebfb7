package words

// Tail keeps the end of a program's output: the last Most bytes that are written to it.
type Tail struct {
	Most int
	kept []byte
}

func (t *Tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b[max(0, len(b)-t.Most):]...)
	if over := len(t.kept) - t.Most; over > t.Most { // rarely, so that a flood costs few copies
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String returns what is kept.
func (t *Tail) String() string { return string(t.kept[max(0, len(t.kept)-t.Most):]) }

// Head keeps the beginning of a program's output: the first Most bytes that are written to it. It embeds no buffer: a
// buffer's ReadFrom would bypass the bound.
type Head struct {
	Most int
	Over bool // more was written
	kept []byte
}

func (h *Head) Write(b []byte) (int, error) {
	keep := min(len(b), h.Most-len(h.kept))
	h.Over = h.Over || keep < len(b)
	h.kept = append(h.kept, b[:keep]...)
	return len(b), nil
}

// String returns what is kept.
func (h *Head) String() string { return string(h.kept) }
