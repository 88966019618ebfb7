package main

import "bytes"

// keptNotes keeps what is said while nobody may hear it, up to a bound: a hook in
// the background may live for weeks.
type keptNotes struct{ bytes.Buffer }

func (k *keptNotes) Write(b []byte) (int, error) {
	const most = 64 << 10
	if k.Len()+len(b) <= most {
		return k.Buffer.Write(b)
	}
	return len(b), nil
}

// complainOnce leaves out what was said last.
func (h *hook) complainOnce(err error) {
	if said := err.Error(); said != h.complained {
		h.complained = said
		h.complain(err)
	}
}
