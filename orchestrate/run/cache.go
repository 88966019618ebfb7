package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// A cache is an index in a file. Its first line has the name of the format, the length and
// the checksum of the part that is read at each turn, and the checksum of the rest. The
// first part is a JSON object on one line, followed by the pending events and the last
// RUN_FAILED, whose lengths are in the object. The rest are the rows of the table, which
// grow with the journal: they are read when an event was added, or when somebody asks
// for an effect.
//
// It is used in two ways. If the stamps of the directory and of the last event are those
// in the cache, no name in the directory changed since the directory was listed, and
// nothing is read. This requires that the directory had not changed for a grain when it
// was listed, since otherwise a later change may have left the same stamp. If the stamps
// differ, the directory is listed. The files of the events in the cache must all be
// there, first and in order, the later ones with the same stamps; then only the files
// after them are read. A ULID is given out once, so a journal that was repaired,
// renumbered or shortened has other names.
//
// An older event that was edited in the same file is not noticed at once. It is noticed
// with the next change in the directory, or, if a thousand events follow it, never.
// Babysitter never edits an event, and itself reads everything on each call.
type cache struct {
	index
	folderStamp string
	young       bool
	last        string // name of the last event's file
	lastStamp   string
	files       string // digest of the names of all events, and the stamps of the last
}

// maxCache bounds a cache in bytes, which is room for a million effects.
const maxCache = 64 << 20

const format = "heartbeat-run-cache-2 "

// isCurrent reports whether nothing changed since the cache was made.
func (c *cache) isCurrent(f *folder) bool {
	return c != nil && !c.young && c.folderStamp == f.stamp && c.lastStamp == fileStamp(f.fd, c.last)
}

// before is the index to extend: the cache's, if its events are those of these files, and
// an empty one otherwise.
func (c *cache) before(files *digester) *index {
	if c == nil || c.seq > len(files.names) || files.digest(c.seq) != c.files {
		return &index{}
	}
	return &c.index
}

// watched is how many events, counted from the last, a cache keeps stamps of. The bound
// keeps long journals cheap.
const watched = 1000

// digester makes digests of the files of a folder. It stats each file once.
type digester struct {
	folder *folder
	names  []string
	stamps map[string]string
}

// digest is the digest of the first n files.
func (d *digester) digest(n int) string {
	sum := sha256.New()
	var line []byte
	for i, name := range d.names[:n] {
		line = append(append(line[:0], name...), '\n')
		if i >= n-watched {
			line = append(line, d.stamp(name)...)
		}
		sum.Write(line)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (d *digester) stamp(name string) string {
	s, known := d.stamps[name]
	if !known {
		s = fileStamp(d.folder.fd, name)
		d.stamps[name] = s
	}
	return s
}

// readCache returns nil if there is no cache, or none that can be used.
func readCache(path, id string) *cache {
	if path == "" {
		return nil
	}
	f, err := disk.OpenRead(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	l, part, err := readPart(f)
	if err != nil {
		return nil
	}
	c, err := parseCache(part, id)
	if err != nil {
		return nil
	}
	c.behind = &rest{path, l}
	return c
}

// firstLine is the first line of a cache. Two caches with the same first line are equal.
type firstLine struct {
	length    int64
	sum, rows string
}

func (l firstLine) String() string {
	return format + strconv.FormatInt(l.length, 10) + " " + l.sum + " " + l.rows + "\n"
}

// readPart reads the first line and the first part.
func readPart(f *disk.File) (l firstLine, part []byte, err error) {
	text := make([]byte, min(f.Info().Size, 16<<10))
	if _, err := f.ReadAt(text, 0); err != nil {
		return l, nil, err
	}
	line, part, _ := bytes.Cut(text, []byte{'\n'})
	words := strings.Split(strings.TrimPrefix(string(line), format), " ")
	if len(words) != 3 {
		return l, nil, errBroken
	}
	l.length, err = strconv.ParseInt(words[0], 10, 64)
	l.sum, l.rows = words[1], words[2]
	if err != nil || l.length < 0 || l.length > min(f.Info().Size, maxCache) || string(line)+"\n" != l.String() {
		return l, nil, errBroken
	}
	if l.length > int64(len(part)) {
		part = make([]byte, l.length)
		if _, err := f.ReadAt(part, int64(len(line)+1)); err != nil {
			return l, nil, err
		}
	}
	part = part[:l.length]
	if checksum(part) != l.sum {
		return l, nil, errBroken
	}
	return l, part, nil
}

// rest says where the rows of a table are that were not read yet.
type rest struct {
	path string
	line firstLine
}

func (r *rest) read() ([]byte, error) {
	f, err := disk.OpenRead(r.path)
	if err != nil {
		return nil, err
	}
	text, err := f.ReadUpTo(maxCache)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	line := r.line.String()
	if !bytes.HasPrefix(text, []byte(line)) || int64(len(text)-len(line)) < r.line.length {
		return nil, errBroken
	}
	rows := text[int64(len(line))+r.line.length:]
	if len(rows)%rowSize != 0 || checksum(rows) != r.line.rows {
		return nil, errBroken
	}
	return rows, nil
}

var errBroken = errors.New("it is not a cache of this run")

func parseCache(text []byte, id string) (*cache, error) {
	head, rest, _ := bytes.Cut(text, []byte{'\n'})
	m, err := flat.Parse(head)
	if err != nil || m.String("run") != id {
		return nil, errBroken
	}
	c := &cache{
		folderStamp: m.String("folder"), young: m.Bool("young"), last: m.String("last"), lastStamp: m.String("last_stamp"), files: m.String("files"),
		index: index{seq: int(m.Int("seq")), moved: int(m.Int("moved")), life: m.String("life"), ok: int(m.Int("ok")), failed: int(m.Int("error"))},
	}
	for _, e := range gjson.ParseBytes(m.Raw("pending")).Array() {
		e, text, ok := takeEvent(e, rest)
		if !ok {
			return nil, errBroken
		}
		f, err := e.effect()
		if err != nil {
			return nil, err
		}
		c.pending, rest = append(c.pending, pending{f, e.text}), text
	}
	if m.Has("failure") {
		e, text, ok := takeEvent(gjson.ParseBytes(m.Raw("failure")), rest)
		if !ok {
			return nil, errBroken
		}
		c.failure, rest = &e, text
	}
	if len(rest) > 0 {
		return nil, errBroken
	}
	return c, m.Err()
}

// takeEvent cuts an event off the text; at is its [SEQ,LENGTH].
func takeEvent(at gjson.Result, text []byte) (e event, rest []byte, ok bool) {
	n := at.Get("1").Int()
	if n < 0 || n > int64(len(text)) {
		return e, nil, false
	}
	e, err := parseEvent(int(at.Get("0").Int()), text[:n:n])
	return e, text[n:], err == nil
}

// checksum detects a cache that a crash left incomplete.
func checksum(text []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))), 16)
}

// newCache is a cache without its index: all stamps are taken before the files are read.
func newCache(f *folder, files *digester) *cache {
	c := &cache{folderStamp: f.stamp, young: f.young, files: files.digest(len(files.names))}
	if n := len(files.names); n > 0 {
		c.last = files.names[n-1]
		c.lastStamp = fileStamp(f.fd, c.last)
	}
	return c
}

// text is the content of the cache's file. If two processes publish at once, one of their
// caches stays, or a file that the checksums refuse.
func (c *cache) text(id string) []byte {
	var o flat.Object
	o.String("run", id)
	o.String("folder", c.folderStamp)
	o.Bool("young", c.young)
	o.String("last", c.last)
	o.String("last_stamp", c.lastStamp)
	o.String("files", c.files)
	o.Int("seq", int64(c.seq))
	o.Int("moved", int64(c.moved))
	o.String("life", c.life)
	o.Int("ok", int64(c.ok))
	o.Int("error", int64(c.failed))
	var list []string
	var body []byte
	for _, p := range c.pending {
		list, body = append(list, place(p.effect.Seq, p.text)), append(body, p.text...)
	}
	o.Raw("pending", []byte("["+strings.Join(list, ",")+"]"))
	if c.failure != nil {
		o.Raw("failure", []byte(place(c.failure.seq, c.failure.text)))
		body = append(body, c.failure.text...)
	}
	part := append(append(o.End(), '\n'), body...)
	l := firstLine{length: int64(len(part)), sum: checksum(part), rows: checksum(c.effects.rows)}
	return append(append([]byte(l.String()), part...), c.effects.rows...)
}

func place(seq int, text []byte) string {
	return "[" + strconv.Itoa(seq) + "," + strconv.Itoa(len(text)) + "]"
}
