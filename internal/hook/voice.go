package hook

import (
	"bytes"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
)

// voice is what the hook says on stderr.
type voice struct {
	cli.Streams
	complained string           // the error that was said last
	aside      []inbox.SetAside // not yet said
}

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

// complainOnce leaves out what was said last, and reports whether it did not.
func (v *voice) complainOnce(err error) bool {
	said := err.Error()
	if said == v.complained {
		return false
	}
	v.complained = said
	v.Complain(err)
	return true
}

// hold keeps back what is said of a transaction that may be dropped: the full
// command, which then looks again, says it. The function that it returns ends that.
func (v *voice) hold() (say func(bool)) {
	stderr, held := v.Err, new(bytes.Buffer)
	v.Err = held
	return func(is bool) {
		if v.Err = stderr; is {
			_, _ = held.WriteTo(stderr) // nobody is left to tell
		}
	}
}

// noteAside says what was set aside since it was said last.
func (v *voice) noteAside() {
	for _, s := range v.aside {
		v.Note("%s", s)
	}
	v.aside = nil
}
