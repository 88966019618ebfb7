package price

import (
	"errors"

	"heartbeat/internal/flat"
)

// Tokens are the tokens of one or many requests, as the model's provider counts
// them: what the cache held is not part of Input.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Sum is all tokens, of whatever kind: what a limit of tokens counts.
func (t Tokens) Sum() int64 {
	return plus(plus(t.Input, t.Output), plus(t.CacheRead, t.CacheWrite))
}

// Plus is the sum of both.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{plus(t.Input, o.Input), plus(t.Output, o.Output), plus(t.CacheRead, o.CacheRead), plus(t.CacheWrite, o.CacheWrite)}
}

// Minus is what is left of t without o, which is not more.
func (t Tokens) Minus(o Tokens) Tokens {
	return Tokens{t.Input - o.Input, t.Output - o.Output, t.CacheRead - o.CacheRead, t.CacheWrite - o.CacheWrite}
}

// Weight is what the tokens cost relative to others of the same model: it divides a
// sum of dollars that is known between the requests that it is for. It is no price
// table: no dollars ever follow from it alone.
func (t Tokens) Weight() int64 {
	return plus(plus(times(t.Input, 100), times(t.Output, 500)), plus(times(t.CacheWrite, 125), times(t.CacheRead, 10)))
}

// Members writes or reads the four members.
func (t *Tokens) Members(c flat.Codec) {
	c.Int("input", &t.Input)
	c.Int("output", &t.Output)
	c.Int("cache_read", &t.CacheRead)
	c.Int("cache_write", &t.CacheWrite)
}

// JSON is the tokens as an object.
func (t Tokens) JSON() []byte {
	var o flat.Object
	t.Members(flat.To(&o))
	return o.End()
}

// TokensOf reads what [Tokens.JSON] wrote. Negative counts are refused.
func TokensOf(object []byte) (t Tokens, err error) {
	m, err := flat.Parse(object)
	if err != nil {
		return t, err
	}
	t.Members(flat.From(m))
	if m.Err() != nil {
		return Tokens{}, m.Err()
	}
	if t.Input < 0 || t.Output < 0 || t.CacheRead < 0 || t.CacheWrite < 0 {
		return Tokens{}, errors.New("a count of tokens is negative")
	}
	return t, nil
}
