package run

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// index is the result of the events up to seq. The events that a state shows are kept as
// they were read, so that a cache needs no other form for them.
type index struct {
	seq     int
	moved   int    // the seq of the last event that is about the run or an effect
	life    string // the kind of the last of RUN_CREATED, RUN_COMPLETED, RUN_FAILED
	ok      int
	failed  int
	pending []pending
	failure *event
	effects table
	behind  *rest // where the table is, until it is read; or nil
}

// load reads the table, unless that was done.
func (x *index) load() (err error) {
	if x.behind != nil {
		if x.effects.rows, err = x.behind.read(); err == nil {
			x.behind = nil
		}
	}
	return err
}

type pending struct {
	effect Effect
	text   []byte // the event that asked for it
}

// add adds the next event. After an error the index is invalid.
func (x *index) add(e event) (err error) {
	switch e.kind {
	case runCreated, runCompleted, runFailed, effectRequested, effectResolved:
		x.moved = e.seq
	}
	switch e.kind {
	case runCreated, runCompleted:
		x.life = e.kind
	case runFailed:
		x.life, x.failure = e.kind, &e
	case effectRequested:
		err = x.request(e)
	case effectResolved:
		err = x.resolve(e)
	}
	x.seq = e.seq
	return err
}

func (x *index) request(e event) error {
	f, err := e.effect()
	if err != nil {
		return err
	}
	if err := x.effects.add(f.ID, f.InvocationKey); err != nil {
		return err
	}
	x.pending = append(x.pending, pending{f, e.text})
	return nil
}

func (x *index) resolve(e event) error {
	id, ok, err := e.answer()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(x.pending, func(p pending) bool { return p.effect.ID == id })
	if i < 0 {
		return fmt.Errorf("it answers the effect %s, which is not pending", id)
	}
	x.pending = slices.Delete(x.pending, i, i+1)
	if ok {
		x.ok++
	} else {
		x.failed++
	}
	return x.effects.resolve(id, ok)
}

func (x *index) state() State {
	s := State{Status: x.status(), LastSeq: x.seq, Moved: x.moved, ResolvedOK: x.ok, ResolvedError: x.failed, index: x}
	for _, p := range x.pending {
		s.Pending = append(s.Pending, p.effect)
	}
	if x.failure != nil {
		s.Failure = x.failure.failure()
	}
	return s
}

func (x *index) status() Status {
	switch {
	case x.life == runCompleted:
		return Completed
	case x.life == runFailed:
		return Failed
	case len(x.pending) > 0:
		return Waiting
	}
	return Created
}

// table has every effect of a run, small enough to be read often: digests of the id and of
// the invocation key, neither of which may occur twice, and the status.
type table struct {
	rows []byte

	ids, keys map[digest]int // where each row begins, once many are added
}

type digest [16]byte

const rowSize = 2*len(digest{}) + 1

const (
	rowRequested = iota
	rowOK
	rowError
)

func digestOf(s string) digest {
	sum := sha256.Sum256([]byte(s))
	return digest(sum[:])
}

// errTwice says that an invocation key was requested before.
var errTwice = errors.New("is asked for a second time")

func (t *table) add(id, key string) error {
	t.prepare()
	i, k := digestOf(id), digestOf(key)
	if _, is := t.keys[k]; is {
		return fmt.Errorf("%s %w", key, errTwice)
	}
	if _, is := t.ids[i]; is {
		return fmt.Errorf("the effect %s was asked for before", id)
	}
	t.ids[i], t.keys[k] = len(t.rows), len(t.rows)
	t.rows = append(append(append(t.rows, i[:]...), k[:]...), rowRequested)
	return nil
}

func (t *table) prepare() {
	if t.ids != nil {
		return
	}
	t.ids, t.keys = make(map[digest]int, len(t.rows)/rowSize), make(map[digest]int, len(t.rows)/rowSize)
	for at := 0; at < len(t.rows); at += rowSize {
		t.ids[digest(t.rows[at:at+16])], t.keys[digest(t.rows[at+16:at+32])] = at, at
	}
}

func (t *table) resolve(id string, ok bool) error {
	at := t.find(id)
	if at < 0 {
		return errors.New("the effect " + id + " is not known")
	}
	t.rows[at+rowSize-1] = rowError
	if ok {
		t.rows[at+rowSize-1] = rowOK
	}
	return nil
}

// find is the offset of the effect's row, or -1.
func (t *table) find(id string) int {
	d := digestOf(id)
	if t.ids != nil {
		if at, is := t.ids[d]; is {
			return at
		}
		return -1
	}
	for at := 0; at < len(t.rows); at += rowSize {
		if digest(t.rows[at:at+16]) == d {
			return at
		}
	}
	return -1
}

func (t *table) status(id string) EffectStatus {
	at := t.find(id)
	if at < 0 {
		return Unknown
	}
	return [...]EffectStatus{rowRequested: Requested, rowOK: ResolvedOK, rowError: ResolvedError}[t.rows[at+rowSize-1]]
}
