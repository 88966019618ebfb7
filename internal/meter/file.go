package meter

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

const prefix = ".meter-"

// Name is the name of a session's file, whatever the session is called.
func Name(session string) string {
	plain := session != "" && len(session) <= 64
	for i := 0; plain && i < len(session); i++ {
		c := session[i]
		plain = c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	if plain {
		return prefix + session
	}
	return prefix + "." + strconv.FormatUint(uint64(hash(session)), 16) // no plain name has a dot
}

// Load reads what is counted of a session in dir, the folder of its inbox. Without a
// file, and where it is torn, of another session or of a later release, the state is
// nil. The error is not nil where something else than a readable file of ours is in
// its place.
func Load(dir, session string) (*State, error) {
	f, err := disk.OpenRead(filepath.Join(dir, Name(session)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	s := newest(f).state(session)
	if s != nil {
		s.derive()
	}
	return s, nil
}

// fileVersion is that of the file. The count of another one begins anew.
const fileVersion = 2

// encode is the state as an object.
func (s *State) encode() []byte {
	var o flat.Object
	version := int64(fileVersion)
	s.members(flat.To(&o), &version)
	o.Raw("parts", listOf(s.parts, (*part).numbers))
	o.Raw("shares", listOf(s.shares, (*share).numbers))
	o.Text("models", strings.Join(s.models, "\n"))
	o.Raw("recent", listOf(s.recent, (*request).numbers))
	o.Raw("agents", listOf(s.agents, (*agent).numbers))
	clients := []byte{'['}
	for i := range s.clients {
		if i > 0 {
			clients = append(clients, ',')
		}
		var o flat.Object
		s.clients[i].members(flat.To(&o))
		clients = append(clients, o.End()...)
	}
	o.Raw("clients", append(clients, ']'))
	return o.End()
}

func (s *State) members(c flat.Codec, version *int64) {
	c.Int("v", version)
	c.String("id", &s.ID)
	c.String("session_id", &s.Session)
	c.Text("transcript", &s.Transcript)
	c.Int("read", &s.Read)
	c.NonZero("stated", &s.stated)
	c.Int("summary", &s.summary)
	c.Flag("quiet", &s.quiet)
	c.Text("model", &s.Model)
	percent := int64(s.ContextPercent * 1000)
	c.Int("context_thousandths", &percent)
	s.ContextPercent = float64(percent) / 1000
	at := s.At.UnixNano()
	if s.At.IsZero() {
		at = 0
	}
	c.NonZero("at", &at)
	s.At = time.Time{}
	if at != 0 {
		s.At = time.Unix(0, at).UTC()
	}
}

func (c *client) members(to flat.Codec) {
	to.String("name", &c.name)
	to.Int("total", &c.total)
	to.Int("fell", &c.fell)
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
	for _, v := range m.Value("clients").Items() {
		cm, err := flat.Parse([]byte(v))
		if err != nil {
			return nil
		}
		var c client
		if c.members(flat.From(cm)); cm.Err() != nil {
			return nil
		}
		s.clients = append(s.clients, c)
	}
	read := [...]bool{
		lists(&s.parts, m.Value("parts"), (*part).numbers),
		lists(&s.shares, m.Value("shares"), (*share).numbers),
		lists(&s.recent, m.Value("recent"), (*request).numbers),
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
	ok := s.ID != "" && len(s.parts) > 0 && s.Read >= 0 && s.stated >= 0 && s.summary >= noSummary
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
	for _, c := range s.clients {
		ok = ok && c.total >= 0
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
