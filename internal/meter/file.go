package meter

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

const (
	prefix   = ".meter-"
	lockName = ".meters.lock" // no session has it: theirs begin otherwise
	maxFile  = 1 << 20
)

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
	b, err := disk.ReadState(filepath.Join(dir, Name(session)), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := decode(b)
	if s == nil || s.Session != session {
		return nil, nil
	}
	return s, nil
}

// save replaces the file. The caller has the lock.
func (s *State) save(dir string) error {
	return disk.Publish(filepath.Join(dir, Name(s.Session)), s.encode(), false)
}

// encode is a line with the sum of the second, which is an object.
func (s *State) encode() []byte {
	var o flat.Object
	version := int64(1)
	s.members(flat.To(&o), &version)
	o.Raw("parts", listOf(s.parts, part.numbers))
	o.Raw("recent", listOf(s.recent, request.numbers))
	o.Raw("held", listOf(s.held, func(h held) []int64 { return []int64{h.nanos, h.upTo} }))
	o.Raw("agents", listOf(s.agents, func(a agent) []int64 { return []int64{a.name, a.read} }))
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
	body := o.End()
	sum := strconv.AppendUint(nil, uint64(crc32.ChecksumIEEE(body))|1<<32, 16)
	return append(append(append(sum[1:], '\n'), body...), '\n')
}

func (s *State) members(c flat.Codec, version *int64) {
	c.Int("v", version)
	c.String("id", &s.ID)
	c.String("session_id", &s.Session)
	c.Text("transcript", &s.Transcript)
	c.Int("read", &s.Read)
	c.Flag("dollars", &s.Spent.Dollars)
	c.NonZero("stated", &s.stated)
	c.NonZero("requests", &s.main)
	settled := int64(s.settled)
	c.NonZero("settled", &settled)
	s.settled = int(settled)
	c.Flag("behind", &s.behind)
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
	to.NonZero("began", &c.began)
	to.Int("base", &c.base)
	to.Int("fell", &c.fell)
	to.NonZero("off", &c.off)
}

// decode is nil for what encode did not write.
func decode(b []byte) *State {
	sum, body, ok := bytes.Cut(b, []byte{'\n'})
	body, ended := bytes.CutSuffix(body, []byte{'\n'})
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || !ended || err != nil || len(sum) != 8 || uint64(crc32.ChecksumIEEE(body)) != want {
		return nil
	}
	m, err := flat.Parse(body)
	if err != nil {
		return nil
	}
	s, version := new(State), int64(0)
	s.members(flat.From(m), &version)
	if version != 1 || m.Err() != nil {
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
		lists(&s.parts, m.Value("parts"), len(part{}.numbers()), partOf),
		lists(&s.recent, m.Value("recent"), len(request{}.numbers()), requestOf),
		lists(&s.held, m.Value("held"), 2, func(n []int64) held { return held{n[0], n[1]} }),
		lists(&s.agents, m.Value("agents"), 2, func(n []int64) agent { return agent{n[0], n[1]} }),
	}
	for _, ok := range read {
		if !ok {
			return nil
		}
	}
	if !s.plausible() {
		return nil
	}
	s.derive()
	return s
}

// plausible refuses what no counter writes: a file with a right sum may still have
// been written by something else.
func (s *State) plausible() bool {
	ok := s.ID != "" && len(s.parts) > 0 && s.settled >= 0 && s.settled < len(s.parts) && s.Read >= 0 && s.main >= 0 && s.stated >= 0
	for i, p := range s.parts {
		ok = ok && p.from >= -1 && p.at >= 0 && p.weight >= 0 && p.own.Nanos >= 0 && p.own.Requests >= 0 && counts(p.own.Tokens)
		ok = ok && (i == 0 || p.from > s.parts[i-1].from)
	}
	for _, r := range s.recent {
		ok = ok && counts(r.tokens)
	}
	for _, h := range s.held {
		ok = ok && h.nanos >= 0
	}
	for _, c := range s.clients {
		ok = ok && c.total >= 0 && c.began >= 0
	}
	for _, a := range s.agents {
		ok = ok && a.read >= 0
	}
	return ok
}

func counts(t price.Tokens) bool {
	return t.Input >= 0 && t.Output >= 0 && t.CacheRead >= 0 && t.CacheWrite >= 0
}

func (p part) numbers() []int64 {
	return []int64{p.from, p.at, p.weight, bit(p.divided), p.own.Nanos, p.own.Requests,
		p.own.Tokens.Input, p.own.Tokens.Output, p.own.Tokens.CacheRead, p.own.Tokens.CacheWrite}
}

func partOf(n []int64) part {
	return part{from: n[0], at: n[1], weight: n[2], divided: n[3] != 0,
		own: price.Amount{Nanos: n[4], Requests: n[5], Tokens: price.Tokens{Input: n[6], Output: n[7], CacheRead: n[8], CacheWrite: n[9]}}}
}

func (r request) numbers() []int64 {
	return []int64{r.name, r.part, r.number, bit(r.priced), r.tokens.Input, r.tokens.Output, r.tokens.CacheRead, r.tokens.CacheWrite}
}

func requestOf(n []int64) request {
	return request{name: n[0], part: n[1], number: n[2], priced: n[3] != 0,
		tokens: price.Tokens{Input: n[4], Output: n[5], CacheRead: n[6], CacheWrite: n[7]}}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// listOf writes numbers one after the other, in one array: reading them back is a
// part of what every reading takes.
func listOf[T any](all []T, numbers func(T) []int64) []byte {
	b := []byte{'['}
	for _, v := range all {
		for _, n := range numbers(v) {
			b = append(strconv.AppendInt(b, n, 10), ',')
		}
	}
	if len(b) > 1 {
		b = b[:len(b)-1]
	}
	return append(b, ']')
}

// lists reads what listOf wrote, size numbers to an item.
func lists[T any](into *[]T, v flat.Value, size int, of func([]int64) T) bool {
	if len(v) < 2 || v[0] != '[' {
		return false
	}
	rest := string(v[1 : len(v)-1])
	for rest != "" {
		n := make([]int64, size)
		for i := range n {
			at := 0
			for at < len(rest) && rest[at] != ',' {
				at++
			}
			var err error
			if n[i], err = strconv.ParseInt(rest[:at], 10, 64); err != nil {
				return false
			}
			if rest = rest[min(at+1, len(rest)):]; rest == "" && i < size-1 {
				return false
			}
		}
		*into = append(*into, of(n))
	}
	return true
}

// hash is FNV-1a: names need to differ, not to be secret.
func hash(s string) int64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return int64(h)
}
