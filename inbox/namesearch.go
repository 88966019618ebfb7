package inbox

import (
	"errors"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// searchSpan is how much may be searched for names while others wait for the lock.
const searchSpan = 1 << 20

// errSearchFirst says that there is more to search than may be searched under the
// lock.
var errSearchFirst = errors.New("the names are to be looked for first")

// nameSearch is the result of a search for names, and how far it got in the queue
// file and in those of the outcomes. It starts without the lock and is completed under the
// lock, when little is left to search, however large the files are.
type nameSearch struct {
	generation    int // of the queue file
	cursor, queue int64
	before        string // the bytes before queue, to recognise the file
	queued        map[string][]place
	torn          map[string]place // found in a last line without its newline

	answered, aside outcomes

	passes int // how often it gave up the lock
}

// outcomes are what was found in the file of the results, or of the dead letters.
type outcomes struct {
	upTo  journal.Point
	found map[string]place
}

// maxPasses bounds how often a search gives up the lock: somebody who fills or
// replaces the files all the time must not keep it from ending.
const maxPasses = 100

// searchUnlocked searches without the lock.
func (l *nameSearch) searchUnlocked(b *Inbox, ids map[string]bool) (err error) {
	l.passes++
	// The outcomes come first: an entry that is settled in between then has its own
	// after what was read.
	if err := l.searchOutcomes(b, ids); err != nil {
		return err
	}
	v, err := b.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return l.searchQueue(v.tx, ids)
}

// find says where the entries with those ids are, as [Tx.find] does, or gives
// errSearchFirst if that would take long.
func (l *nameSearch) find(t *Tx, ids map[string]bool) (map[string]place, error) {
	rest, err := l.remaining(t)
	if err != nil {
		return nil, err
	}
	if rest > searchSpan && l.passes < maxPasses {
		return nil, errSearchFirst
	}
	if err := l.searchOutcomes(t.box, ids); err != nil {
		return nil, err
	}
	if err := l.searchQueue(t, ids); err != nil {
		return nil, err
	}
	found := map[string]place{}
	note := func(id string, p place) bool {
		if _, known := found[id]; ids[id] && !known {
			found[id] = p
		}
		return true
	}
	t.findOut(note)
	if _, err := t.findScheduled(note); err != nil {
		return nil, err
	}
	for id := range ids {
		for _, p := range l.queued[id] {
			if p.start >= t.st.Cursor {
				note(id, p)
			}
		}
		for _, more := range []map[string]place{l.torn, l.answered.found, l.aside.found} {
			if p, there := more[id]; there {
				note(id, p)
			}
		}
	}
	return found, nil
}

// remaining is how many bytes are still to be searched.
func (l *nameSearch) remaining(t *Tx) (int64, error) {
	from, _, err := l.resumeAt(t)
	if err != nil {
		return 0, err
	}
	rest := t.queueSize() - from
	for kind, o := range l.outcomes() {
		f, err := openState(t.box.fileOf(kind))
		if err != nil {
			return 0, err
		}
		if f == nil {
			continue
		}
		rest += f.Info().Size - o.upTo.In(f)
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return rest, nil
}

func (l *nameSearch) outcomes() map[journal.Kind]*outcomes {
	return map[journal.Kind]*outcomes{journal.Results: &l.answered, journal.DeadLetters: &l.aside}
}

// resumeAt is where the search in the queue continues, and whether the file is the
// one that was searched before.
func (l *nameSearch) resumeAt(t *Tx) (off int64, known bool, err error) {
	if l.queue == 0 || t.file == nil || l.queue > t.queueSize() || l.generation != t.st.QueueGeneration || l.cursor > t.st.Cursor {
		return t.st.Cursor, false, nil
	}
	before, err := t.bytesBefore(l.queue)
	if err != nil || before != l.before {
		return t.st.Cursor, false, err
	}
	return max(t.st.Cursor, l.queue), true, nil
}

func (l *nameSearch) searchQueue(t *Tx, ids map[string]bool) error {
	from, known, err := l.resumeAt(t)
	if err != nil {
		return err
	}
	if !known {
		l.queued = map[string][]place{}
	}
	l.torn = map[string]place{}
	l.generation, l.cursor, l.queue, l.before = t.st.QueueGeneration, t.st.Cursor, 0, ""
	if t.file == nil {
		return nil
	}
	err = t.scanQueue(from, needleOf(ids), func(id string, p place, whole bool) bool {
		switch {
		case !ids[id]:
		case whole:
			l.queued[id] = append(l.queued[id], p)
		default:
			l.torn[id] = p
		}
		return true
	})
	if err != nil {
		return err
	}
	if l.queue, err = lines.Start(t.file, t.queueSize()); err != nil {
		return err
	}
	l.before, err = t.bytesBefore(l.queue)
	return err
}

func (l *nameSearch) searchOutcomes(b *Inbox, ids map[string]bool) error {
	for kind, o := range l.outcomes() {
		if err := o.search(b.fileOf(kind), kind, ids); err != nil {
			return err
		}
	}
	return nil
}

func (o *outcomes) search(path string, kind journal.Kind, ids map[string]bool) error {
	f, err := openState(path)
	if f == nil || err != nil {
		*o = outcomes{}
		return err
	}
	size := f.Info().Size
	from := o.upTo.In(f)
	if from == 0 || o.found == nil {
		from, o.found = 0, map[string]place{}
	}
	if kind == journal.DeadLetters {
		err = scanSetAside(f, from, ids, o.found)
	} else {
		err = scanAnswered(f, from, ids, func(id string, p place) bool {
			if _, known := o.found[id]; !known {
				o.found[id] = p
			}
			return true
		})
	}
	if err == nil {
		o.upTo.File = f.Identity()
		o.upTo.Off, err = lines.Start(f, size)
	}
	return errors.Join(err, f.Close())
}

// bytesBefore are some bytes of the queue file, enough to tell one line from
// another.
func (t *Tx) bytesBefore(off int64) (string, error) { return textBefore(t.file, off) }

func textBefore(f *disk.File, off int64) (string, error) {
	b := make([]byte, min(off, anchorSpan))
	n, err := f.ReadAt(b, off-int64(len(b)))
	if err == io.EOF {
		err = nil // it was truncated just now, and the difference shows that
	}
	return string(b[:n]), err
}
