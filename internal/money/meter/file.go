package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
)

// Name is that of the file.
const Name = ".meter"

const (
	// fileVersion is that of a line. The count of another one begins anew.
	fileVersion = 3
	// maxSessions is how many lines there are. A session whose line is gone is counted anew.
	maxSessions = 8
	maxFile     = 1 << 20
)

// line is the count of a session: two sums, of the session's name and of the state, and the state.
type line struct{ session, sum, body string }

func (l line) whole() bool { return l.sum == sumOf(l.body) }

func (l line) size() int { return len(l.session) + len(l.sum) + len(l.body) + len("  \n") }

// sumOf tells a whole text from a torn one.
func sumOf(text string) string { return strconv.FormatUint(uint64(hash(text)), 16) }

// Load reads what is counted of a session in dir, the folder of its inbox. Without a file, and where
// its line is torn or of another release, the state is nil. The error is not nil where something else
// than a readable file of ours is in its place.
func Load(dir, session string) (*State, error) {
	all, err := load(dir)
	if err != nil || !hasLine(all, session) {
		return nil, err
	}
	s := stateIn(all, session)
	s.derive()
	return s, nil
}

// loads bounds how often a file is read that is being written.
const loads = 20

func load(dir string) (all []line, err error) {
	f, err := disk.OpenRead(filepath.Join(dir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	for range loads {
		all, err = readLines(f)
		if err != nil || !slices.ContainsFunc(all, func(l line) bool { return !l.whole() }) {
			break
		}
	}
	return all, err
}

// readLines are the lines of a file, the first one of each session.
func readLines(f *disk.File) (all []line, err error) {
	text, err := f.ReadUpTo(maxFile)
	for each := range strings.Lines(string(text)) {
		var l line
		l.session, each, _ = strings.Cut(strings.TrimSuffix(each, "\n"), " ")
		l.sum, l.body, _ = strings.Cut(each, " ")
		if !slices.ContainsFunc(all, func(o line) bool { return o.session == l.session }) {
			all = append(all, l)
		}
	}
	return all, err
}

// stateIn is the state that the lines have of a session, or that of one that begins.
func stateIn(all []line, session string) *State {
	for _, l := range all {
		if l.session != sumOf(session) || !l.whole() {
			continue
		}
		if s := decode([]byte(l.body)); s != nil && s.Session == session {
			return s
		}
	}
	return begun(session)
}

// writeLines puts the state before those of other sessions, unless it is the same.
func writeLines(f *disk.File, all []line, s *State) error {
	body := string(s.encode())
	mine := line{sumOf(s.Session), sumOf(body), body}
	if len(all) > 0 && all[0] == mine {
		return nil
	}
	if mine.size() > maxFile {
		return fmt.Errorf("write %s: the count takes %d bytes, and may have no more than %d bytes", f.Path(), len(body), maxFile)
	}
	text, n := []byte(nil), 0
	for _, l := range append([]line{mine}, all...) {
		if text != nil && l.session == mine.session || n == maxSessions || len(text)+l.size() > maxFile {
			continue
		}
		text, n = append(append(append(append(append(append(text, l.session...), ' '), l.sum...), ' '), l.body...), '\n'), n+1
	}
	was := f.Info().Size
	if err := f.WriteAt(text, 0); err != nil || was <= int64(len(text)) {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// encode is the state as an object.
func (s *State) encode() []byte {
	var o flat.Object
	version := int64(fileVersion)
	s.members(flat.To(&o), &version)
	o.Raw("parts", listOf(s.parts, (*part).numbers))
	o.Raw("shares", listOf(s.shares, (*share).numbers))
	o.Text("models", strings.Join(s.models, "\n"))
	o.Raw("recent", listOf(s.recent, (*request).numbers))
	o.Raw("summaries", listOf(s.summaries, (*summary).numbers))
	o.Raw("agents", listOf(s.agents, (*agent).numbers))
	return o.End()
}

func (s *State) members(c flat.Codec, version *int64) {
	c.Int("v", version)
	c.String("session_id", &s.Session)
	c.Text("transcript", &s.Transcript)
	c.Int("read", &s.Read)
	c.NonZero("stated", &s.stated)
	c.Text("model", &s.Model)
}

// decode is nil for what encode did not write.
func decode(body []byte) *State {
	m, err := flat.Parse(body)
	if err != nil {
		return nil
	}
	s, version := new(State), int64(0)
	s.members(flat.From(m), &version)
	if version != fileVersion || m.Err() != nil {
		return nil
	}
	read := [...]bool{
		lists(&s.parts, m.Value("parts"), (*part).numbers),
		lists(&s.shares, m.Value("shares"), (*share).numbers),
		lists(&s.recent, m.Value("recent"), (*request).numbers),
		lists(&s.summaries, m.Value("summaries"), (*summary).numbers),
		lists(&s.agents, m.Value("agents"), (*agent).numbers),
	}
	for _, ok := range read {
		if !ok {
			return nil
		}
	}
	if models := m.String("models"); models != "" || len(s.shares) > 0 {
		s.models = strings.Split(models, "\n")
	}
	if !s.plausible() {
		return nil
	}
	return s
}

// plausible refuses what no counter writes: a file with a right sum may still have
// been written by something else.
func (s *State) plausible() bool {
	ok := len(s.parts) > 0 && s.Read >= 0 && s.stated >= 0
	for i, p := range s.parts {
		own := p.own
		ok = ok && p.from >= -1 && p.at >= 0 && own.Nanos >= 0 && own.Requests >= 0 && own.Unpriced >= 0 && own.Said >= 0 && counts(own.Tokens)
		ok = ok && (i == 0 || p.from > s.parts[i-1].from)
	}
	for _, of := range s.shares {
		ok = ok && of.model >= 0 && of.model < int64(len(s.models)) && of.own.Nanos >= 0 && of.own.Requests >= 0 && counts(of.own.Tokens)
	}
	for _, r := range s.recent {
		ok = ok && counts(r.tokens) && r.nanos >= 0 && r.model >= -1 && r.model < int64(len(s.models))
	}
	for _, of := range s.summaries {
		ok = ok && of.more >= 0
	}
	for _, a := range s.agents {
		ok = ok && a.read >= 0
	}
	return ok
}

func counts(t price.Tokens) bool {
	return t.Input >= 0 && t.Output >= 0 && t.CacheRead >= 0 && t.CacheWrite >= 0
}

// row takes the numbers of an item in turn: it writes them, or reads them.
type row struct {
	to   []byte
	from string
	bad  bool
}

func (r *row) number(n *int64) {
	if r.to != nil {
		r.to = append(strconv.AppendInt(r.to, *n, 10), ',')
		return
	}
	// Most are short, and strconv takes several times as long.
	v, at := int64(0), 0
	for at < len(r.from) && at < 18 && '0' <= r.from[at] && r.from[at] <= '9' {
		v = 10*v + int64(r.from[at]-'0')
		at++
	}
	if at == 0 || at < len(r.from) && r.from[at] != ',' {
		end := strings.IndexByte(r.from, ',')
		if end < 0 {
			end = len(r.from)
		}
		var err error
		if v, err = strconv.ParseInt(r.from[:end], 10, 64); err != nil {
			r.bad = true
		}
		at = end
	}
	*n, r.from = v, r.from[min(at+1, len(r.from)):]
}

func (r *row) flag(b *bool) {
	n := int64(0)
	if *b {
		n = 1
	}
	r.number(&n)
	*b = n != 0
}

func (r *row) amount(a *price.Amount) {
	r.flag(&a.Dollars)
	r.number(&a.Nanos)
	r.number(&a.Requests)
	r.number(&a.Unpriced)
	r.number(&a.Said)
	r.tokens(&a.Tokens)
}

func (r *row) tokens(t *price.Tokens) {
	r.number(&t.Input)
	r.number(&t.Output)
	r.number(&t.CacheRead)
	r.number(&t.CacheWrite)
}

func (p *part) numbers(r *row) {
	r.number(&p.from)
	r.number(&p.at)
	r.amount(&p.own)
}

func (s *share) numbers(r *row) {
	r.number(&s.part)
	r.number(&s.model)
	r.amount(&s.own)
}

func (q *request) numbers(r *row) {
	r.number(&q.name)
	r.number(&q.part)
	r.number(&q.nanos)
	r.flag(&q.unpriced)
	r.number(&q.at)
	r.number(&q.model)
	r.tokens(&q.tokens)
}

func (s *summary) numbers(r *row) {
	r.number(&s.name)
	r.number(&s.part)
	r.number(&s.more)
	r.flag(&s.told)
}

func (a *agent) numbers(r *row) { r.number(&a.name); r.number(&a.read) }

// listOf writes the numbers of all items in one string: reading them back is a part of
// what every reading and every turn takes.
func listOf[T any](all []T, numbers func(*T, *row)) []byte {
	r := row{to: append(make([]byte, 0, 64+64*len(all)), '"')}
	for i := range all {
		numbers(&all[i], &r)
	}
	if len(all) > 0 {
		r.to = r.to[:len(r.to)-1]
	}
	return append(r.to, '"')
}

// lists reads what listOf wrote.
func lists[T any](into *[]T, v flat.Value, numbers func(*T, *row)) bool {
	if len(v) < 2 || !v.IsString() {
		return false
	}
	r := row{from: string(v[1 : len(v)-1])}
	for r.from != "" && !r.bad {
		var item T
		numbers(&item, &r)
		*into = append(*into, item)
	}
	return !r.bad
}

// hash is FNV-1a: names need to differ, not to be secret.
func hash(s string) int64 {
	h := uint64(offset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * multiplier
	}
	return int64(h)
}

const (
	offset     = 14695981039346656037
	multiplier = 1099511628211
)

func hasLine(all []line, session string) bool {
	return slices.ContainsFunc(all, func(l line) bool { return l.session == sumOf(session) && l.whole() })
}
