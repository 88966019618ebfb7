package inbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
)

const (
	// A line is long if it has more than longLine bytes, or more than longJSON as a JSON string: a line is held in
	// memory several times on its way.
	longLine = 2 << 20
	longJSON = 4 << 20
	// maxLongMembers bounds the members of a long line's envelope other than its prompt, all of which go into
	// its result.
	maxLongMembers = 64 << 10

	// standsFor begins the text that is delivered in place of a long one.
	standsFor = "The request is too long to be handed over here ("

	// longMost is how much of a long line is kept to tell it from others.
	longMost = 64 << 10

	textPrefix = ".entry-"
	textSuffix = ".txt"
)

// textName reports whether longEntry made a file of that name.
func textName(name string) bool { return isNamed(name, textPrefix, textSuffix) }

// isNamed reports whether a name is that of a file beside the inbox, with this beginning and this end.
func isNamed(name, prefix, suffix string) bool {
	return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) && filepath.Base(name) == name
}

// isLong reports whether the line's text is delivered in a file.
func (l line) isLong() bool {
	if l.tooLong || len(l.raw) <= longJSON/6 { // a byte takes at most six in JSON
		return l.tooLong
	}
	size := len(l.raw)
	for _, c := range l.raw {
		switch {
		case c < ' ':
			size += 5
		case c == '"' || c == '\\':
			size++
		}
	}
	return size > longJSON
}

// errUnwieldy means that a line cannot be an entry: it is longer than MaxLine, or has too much beside its prompt.
var errUnwieldy = errors.New("too long")

// longEntry returns an entry whose text is in a file of its own, which is durable when longEntry returns. The
// entry is delivered and recorded as an envelope that names the file. A blank line gives io.EOF.
func (t *Tx) longEntry(l line) (e Entry, err error) {
	// The line itself is most of the memory in use here: collect garbage before it takes as much again.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	end, err := contentEnd(t.file, l)
	if err != nil {
		return e, inReading(err)
	}
	if end-l.start > MaxLine {
		return e, errUnwieldy
	}
	raw := l.raw
	if raw == nil {
		raw = make([]byte, end-l.start)
		if _, err := t.file.ReadAt(raw, l.start); err != nil {
			return e, inReading(err)
		}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return e, io.EOF
	}
	p := partsOf(raw)
	if p.unwieldy {
		return e, errUnwieldy
	}
	// The name includes the number of the commit: after an inbox was emptied, a dead letter may still name
	// the file of the same line at the same offset.
	name := fmt.Sprintf("%s%d-%d-%.12s%s", textPrefix, l.start, t.st.Seq+1, l.id, textSuffix)
	var o flat.Object
	o.Raw(idMember, p.id)
	o.String(promptMember, fmt.Sprintf(standsFor+"%d bytes). It is in the file %s: read all of it, in parts if need be, and carry it out.", len(raw), t.box.beside(name)))
	for _, m := range p.members {
		o.Raw(m.name, m.value)
	}
	e = decodeEntry(o.End())
	e.EntryID, e.Start, e.End, e.terminated, e.textFile = l.id, l.start, l.end, l.terminated, name
	if p.write(inkFinder{}) == nil { // there is nothing to deliver
		e.Text = ""
	}
	if e.Text == "" || e.expired(t.box.opts.Now()) {
		e.textFile = "" // it becomes a dead letter
		return e, nil
	}
	if err := t.box.writeBeside(name, p.write); err != nil {
		return e, fmt.Errorf("write the text of the entry %s to a file: %w: it stays queued", words.Name(e.ID, e.EntryID), err)
	}
	return e, nil
}

type member struct {
	name  string
	value []byte
}

// parts are the parts of a long line, all of them slices of its bytes.
type parts struct {
	quoted   []byte // the text as a JSON string, or nil
	verbatim []byte // otherwise the whole line
	id       []byte // with its quotes, nil for none
	members  []member
	unwieldy bool
}

func partsOf(raw []byte) (p parts) {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case trimmed[0] == '"' && json.Valid(trimmed):
		p.quoted = trimmed
	case trimmed[0] == '{' && json.Valid(trimmed) && !flat.TooDeep(trimmed):
		p.readEnvelope(trimmed)
	}
	if p.quoted == nil {
		return parts{verbatim: raw}
	}
	return p
}

func (p *parts) readEnvelope(object []byte) {
	size := 0
	flat.Each(object, func(name, value []byte) {
		var n string
		if len(name) <= maxLongMembers {
			_ = json.Unmarshal(name, &n) // already validated
		}
		switch {
		case n == promptMember:
			if p.quoted = nil; value[0] == '"' {
				p.quoted = value
			}
			return
		case n == idMember && value[0] == '"' && len(value) <= maxLongMembers:
			p.id = value
			return
		}
		if size += len(name) + len(value); size > maxLongMembers {
			p.unwieldy = true
			return
		}
		p.members = append(p.members, member{n, value})
	})
}

// inkFinder is a writer that fails at the first rune that is not white space.
type inkFinder struct{}

var errInk = errors.New("not blank")

func (inkFinder) Write(b []byte) (int, error) {
	if bytes.IndexFunc(b, func(r rune) bool { return !unicode.IsSpace(r) }) >= 0 {
		return 0, errInk
	}
	return len(b), nil
}

func (p *parts) write(w io.Writer) error {
	if p.quoted != nil {
		return flat.WriteText(w, p.quoted)
	}
	const most = 64 << 10 // a copy of the whole line would take as much memory again
	for rest := p.verbatim; len(rest) > 0; {
		n := min(most, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) && n < most+utf8.UTFMax {
			n++
		}
		if _, err := w.Write(lines.Valid(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// forgetText has the next commit remove the text file of a settled entry.
func (t *Tx) forgetText(d *Delivery) {
	if textName(d.TextFile) {
		t.forget = append(t.forget, d.TextFile)
	}
}

// writeBeside writes a file beside the inbox, over an existing one. The file is durable when writeBeside returns.
func (b *Inbox) writeBeside(name string, write func(io.Writer) error) (err error) {
	f, _, err := disk.OpenWrite(b.beside(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := &disk.Writer{File: f}
	out := bufio.NewWriterSize(to, 1<<20)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Truncate(to.Off)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = disk.SyncDir(b.dir)
	}
	return err
}

const (
	spillPrefix = ".dead-letter-"
	spillSuffix = ".raw"
)

// OwnFile returns the name of the file beside the inbox that only the letter needs, "" for none. A forged letter may
// name any file, and a requeued entry may still need its text.
func (l Letter) OwnFile() string {
	name := l.RawFile
	if isNamed(name, spillPrefix, spillSuffix) || textName(name) && l.RequeuedAt == nil {
		return name
	}
	return ""
}

// spill copies a line that is too long into a file of its own, chunk by chunk, and returns the file's name
// once it would survive a power loss. A second call for the same line writes the same file again.
func (b *Inbox) spill(queue io.ReaderAt, l line) (name string, err error) {
	name = fmt.Sprintf("%s%d-%.12s%s", spillPrefix, l.start, l.id, spillSuffix)
	end, err := contentEnd(queue, l)
	if err == nil {
		err = b.writeBeside(name, func(w io.Writer) error {
			_, err := io.CopyN(w, io.NewSectionReader(queue, l.start, end-l.start), end-l.start)
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("set aside the entry %s: %w", words.Short(l.id), err)
	}
	return name, nil
}

// contentEnd returns where the line's content ends, before its line end.
func contentEnd(queue io.ReaderAt, l line) (int64, error) {
	end := l.end
	if l.terminated {
		end--
	}
	var last [1]byte
	if _, err := queue.ReadAt(last[:], end-1); err != nil {
		return 0, err
	}
	if last[0] == '\r' {
		end--
	}
	return end, nil
}

const (
	// triesName exists while a large line is being read for delivery. If that kills the process, the next one
	// finds the file.
	triesName = ".inbox-tries"
	// largeLine is the length of a line, in bytes, above which the file is written. maxTries is how often such a
	// line is tried.
	largeLine = 1 << 20
	maxTries  = 3
)

// tryLarge notes, unsynced, that a large line is about to be read. died means that reading it has killed maxTries
// processes, so that the line must be set aside.
func (t *Tx) tryLarge(l line) (died bool, err error) {
	if l.end-l.start <= largeLine {
		return false, nil
	}
	note, err := t.readTries()
	if err != nil {
		return false, err
	}
	if note.generation != t.st.QueueGeneration || note.start != l.start || note.end != l.end {
		note.tries = 0
	}
	if note.tries >= maxTries {
		t.forget = append(t.forget, triesName)
		return true, nil
	}
	t.trying = true
	return false, disk.Publish(t.box.beside(triesName), fmt.Appendf(nil, "%d %d %d %d\n", t.st.QueueGeneration, l.start, l.end, note.tries+1), false)
}

// triesNote is the content of the file: how often a line was tried.
type triesNote struct {
	generation int // of the queue file, -1 if there is no note
	start, end int64
	tries      int
}

func (t *Tx) readTries() (triesNote, error) {
	none := triesNote{generation: -1}
	content, err := disk.ReadState(t.box.beside(triesName), 4<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, disk.ErrTooLarge) {
		return none, err
	}
	var n triesNote
	if read, _ := fmt.Sscan(string(content), &n.generation, &n.start, &n.end, &n.tries); read != 4 {
		return none, nil
	}
	return n, nil
}
