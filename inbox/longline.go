package inbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/words"
)

const (
	// A line is long if it has that many bytes, or more than longJSON as a JSON
	// string: it is held in memory several times on its way.
	longLine = 2 << 20
	longJSON = 4 << 20
	// maxLongMembers bounds the members of a long line's envelope other than its
	// prompt: all of them go into its result.
	maxLongMembers = 64 << 10

	// standsFor begins what is delivered in place of a long text.
	standsFor = "The request is too long to be handed over here ("

	// longMost is how much of a long line is kept to tell it from others.
	longMost = 64 << 10

	textPrefix = ".entry-"
	textSuffix = ".txt"
)

// textName reports whether writeText made a file of that name.
func textName(name string) bool {
	return strings.HasPrefix(name, textPrefix) && strings.HasSuffix(name, textSuffix) && filepath.Base(name) == name
}

// isLong reports whether the line's text is delivered in a file.
func (l line) isLong() bool {
	if l.tooLong || len(l.raw) <= longJSON/6 { // a byte takes six at most
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

// errUnwieldy says that a line cannot be an entry: it is longer than MaxLine, or
// has too much besides its prompt.
var errUnwieldy = errors.New("too long")

// longEntry is an entry whose text is in a file of its own, which is durable when
// longEntry returns. What is delivered and recorded in place of the line is an
// envelope that names the file. A blank line gives io.EOF.
func (t *Tx) longEntry(l line) (e Entry, err error) {
	// The line itself is most of the memory that this may take, so garbage is
	// collected long before it is as much again.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	end, err := contentEnd(t.file, l)
	if err != nil {
		return e, fmt.Errorf("read inbox: %w", err)
	}
	if end-l.start > MaxLine {
		return e, errUnwieldy
	}
	raw := l.raw
	if raw == nil {
		raw = make([]byte, end-l.start)
		if _, err := t.file.ReadAt(raw, l.start); err != nil {
			return e, fmt.Errorf("read inbox: %w", err)
		}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return e, io.EOF
	}
	p := partsOf(raw)
	if p.unwieldy {
		return e, errUnwieldy
	}
	// The name includes the number of the commit: after an inbox was emptied, a
	// dead letter may still name the file of the same line at the same offset.
	name := fmt.Sprintf("%s%d-%d-%.12s%s", textPrefix, l.start, t.st.Seq+1, l.id, textSuffix)
	e = decodeEntry(p.standIn(t.box.beside(name), len(raw)))
	e.EntryID, e.Start, e.End, e.terminated, e.textFile = l.id, l.start, l.end, l.terminated, name
	if p.blank() {
		e.Text = ""
	}
	if e.Text == "" || e.expired(t.box.opts.Now()) {
		e.textFile = "" // it becomes a dead letter
		return e, nil
	}
	if err := p.writeText(t.box.beside(name)); err != nil {
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
	verbatim []byte // or the line as it is
	id       []byte // with its quotes, nil if there is none
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
			_ = json.Unmarshal(name, &n) // it is valid
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

// standIn is the envelope that replaces the line.
func (p *parts) standIn(path string, size int) []byte {
	var o flat.Object
	o.Raw(idMember, p.id)
	o.String(promptMember, fmt.Sprintf(standsFor+"%d bytes). It is in the file %s: read all of it, in parts if need be, and carry it out.", size, path))
	for _, m := range p.members {
		o.Raw(m.name, m.value)
	}
	return o.End()
}

// blank reports whether there is nothing to deliver.
func (p *parts) blank() bool {
	var w inkFinder
	return p.write(&w) == nil
}

// inkFinder stops the writing at the first rune that is not a space.
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
	const most = 64 << 10
	for rest := p.verbatim; len(rest) > 0; {
		n := min(most, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) && n < most+utf8.UTFMax {
			n++
		}
		if _, err := w.Write(bytes.ToValidUTF8(rest[:n], []byte("\uFFFD"))); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// forgetText makes the next commit remove the text file of a settled entry.
func (t *Tx) forgetText(d *Delivery) {
	if textName(d.TextFile) {
		t.forget = append(t.forget, d.TextFile)
	}
}

// removeForgotten removes those files after the commit. One that stays does no
// harm.
func (t *Tx) removeForgotten() {
	for _, name := range t.forget {
		if err := disk.Remove(t.box.beside(name)); err != nil {
			t.warn("%v: remove it by hand", err)
		}
	}
	t.forget = nil
}

// fileWriter writes to a file in sequence.
type fileWriter struct {
	f   *disk.File
	off int64
}

func (w *fileWriter) Write(b []byte) (int, error) {
	err := w.f.WriteAt(b, w.off)
	w.off += int64(len(b))
	return len(b), err
}

// writeText writes the text's file, again if it exists.
func (p *parts) writeText(path string) (err error) {
	f, _, err := disk.OpenWrite(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := &fileWriter{f: f}
	out := bufio.NewWriterSize(to, 1<<20)
	err = p.write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Truncate(to.off)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = disk.SyncDir(filepath.Dir(path))
	}
	return err
}
