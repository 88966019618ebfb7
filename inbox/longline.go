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
	// A line is long from here on, or where it is longer than longJSON as a JSON
	// string: it is held several times over on its way.
	longLine = 2 << 20
	longJSON = 4 << 20
	// maxLongMembers bounds what the envelope of a long line holds beside its
	// prompt, all of which goes into its result.
	maxLongMembers = 64 << 10

	// longMost is how much of a long line is held to tell it from others.
	longMost = 64 << 10

	textPrefix = ".entry-"
	textSuffix = ".txt"
)

// textName reports whether a name is that of a file which writeText made.
func textName(name string) bool {
	return strings.HasPrefix(name, textPrefix) && strings.HasSuffix(name, textSuffix) && filepath.Base(name) == name
}

// isLong reports whether the line is to be delivered by way of a file.
func (l line) isLong() bool {
	if l.tooLong || len(l.raw) <= longJSON/6 { // six bytes are the most for one
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

// errUnwieldy says that a line can be no entry: it is over MaxLine, or has too
// much beside its prompt.
var errUnwieldy = errors.New("too long")

// longEntry is an entry whose text is in a file of its own, which is durable when
// this returns: what is delivered, and kept in every place where the line would
// be, is an envelope that names it. A blank line gives io.EOF.
func (t *Tx) longEntry(l line) (e Entry, err error) {
	// The line itself is most of the memory that this may take: what is thrown
	// away besides is to be collected before it is as much again.
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
	// The number of the commit is in it, since a dead letter of an inbox that was
	// emptied may name the file of the same line at the same offset.
	name := fmt.Sprintf("%s%d-%d-%.12s%s", textPrefix, l.start, t.st.Seq+1, l.id, textSuffix)
	e = decodeEntry(p.standIn(t.box.file(name), len(raw)))
	e.EntryID, e.Start, e.End, e.terminated, e.textFile = l.id, l.start, l.end, l.terminated, name
	if p.blank() {
		e.Text = ""
	}
	if e.Text == "" || e.expired(t.box.opts.Now()) {
		e.textFile = "" // it is set aside
		return e, nil
	}
	if err := p.writeText(t.box.file(name)); err != nil {
		return e, fmt.Errorf("write the text of the entry %s to a file: %w: it stays queued", words.Name(e.ID, e.EntryID), err)
	}
	return e, nil
}

type member struct {
	name  string
	value []byte
}

// parts are what a long line consists of, all of them within its bytes.
type parts struct {
	quoted   []byte // the text as a JSON string, or nil
	verbatim []byte // or as it stands
	id       []byte // with its quotes, nil where there is none
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

// standIn is the envelope that takes the line's place.
func (p *parts) standIn(path string, size int) []byte {
	var o flat.Object
	o.Raw(idMember, p.id)
	o.String(promptMember, fmt.Sprintf("The request is too long to be handed over here (%d bytes). It is in the file %s: read all of it, in parts if need be, and carry it out.", size, path))
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

// inkFinder ends the writing at the first rune that is no space.
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

// forgetText has the next commit take away the file of an entry that was settled.
func (t *Tx) forgetText(d *Delivery) {
	if textName(d.TextFile) {
		t.forget = append(t.forget, d.TextFile)
	}
}

// removeForgotten does so, behind the commit: a file that is missed is in nobody's
// way.
func (t *Tx) removeForgotten() {
	for _, name := range t.forget {
		if err := disk.Remove(t.box.file(name)); err != nil {
			t.warn("%v: remove it by hand", err)
		}
	}
	t.forget = nil
}

// fileWriter writes on where it was.
type fileWriter struct {
	f   *disk.File
	off int64
}

func (w *fileWriter) Write(b []byte) (int, error) {
	err := w.f.WriteAt(b, w.off)
	w.off += int64(len(b))
	return len(b), err
}

// writeText writes the file again where it is there.
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
