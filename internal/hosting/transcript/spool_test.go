package transcript

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
)

// lines are the lines of a spool with the messages 1..n.
func lines(n int64) []byte {
	b, err := spoolHead{Session: "ses-1"}.line()
	if err != nil {
		panic(err)
	}
	for i := int64(1); i <= n; i++ {
		m := Stored{N: i, At: time.Unix(i, 0), Type: message(i).Type, Content: message(i).Raw}
		head, err := m.head()
		if err != nil {
			panic(err)
		}
		b = append(append(append(b, head...), m.Content...), lineEnd...)
	}
	return b
}

func TestSpoolWithDamage(t *testing.T) {
	whole := lines(3)
	second := bytes.Index(whole, []byte(`{"n":2`))
	tests := map[string]struct {
		content []byte
		want    []int64
	}{
		"whole":                {whole, []int64{1, 2, 3}},
		"torn in the content":  {whole[:len(whole)-5], []int64{1, 2}},
		"torn in the head":     {append(bytes.Clone(whole), `{"n":4,"at`...), []int64{1, 2, 3}},
		"torn at the newline":  {whole[:len(whole)-1], []int64{1, 2}},
		"zeros at the end":     {append(bytes.Clone(whole), make([]byte, 10_000)...), []int64{1, 2, 3}},
		"a line of garbage":    {bytes.Replace(whole, []byte(`{"n":2`), []byte(`{"x":2`), 1), []int64{1, 3}},
		"a line is too short":  {append(append(bytes.Clone(whole[:second+120]), '\n'), whole[second:]...), []int64{1, 2, 3}},
		"a size that is wrong": {bytes.Replace(whole, []byte(`"size":`), []byte(`"size":1`), 1), []int64{2, 3}},
		"a size that is huge":  {bytes.Replace(whole, []byte(`"size":`), []byte(`"size":99999999999`), 1), []int64{2, 3}},
		"a number below 1":     {bytes.Replace(whole, []byte(`{"n":2`), []byte(`{"n":-2`), 1), []int64{1, 3}},
		"no time":              {bytes.Replace(whole, []byte(`"at":"`), []byte(`"at":"x`), 1), []int64{2, 3}},
		"only the head":        {lines(0), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool")
			require.NoError(t, os.WriteFile(path, tc.content, 0o600))
			requireGoesOn(t, path, tc.want)
		})
	}
}

// requireGoesOn checks what is in a spool, and that what is appended after its repair
// is found behind it.
func requireGoesOn(t *testing.T, path string, want []int64) {
	t.Helper()
	read := func() (all []int64, s *spool) {
		var offsets []int64
		s, err := openSpool(path, "ses-1", true, func(m Stored, offset int64) {
			all = append(all, m.N)
			offsets = append(offsets, offset)
		})
		require.NoError(t, err)
		for i, offset := range offsets {
			m, err := s.read(offset)
			if err == nil { // its content may be damaged
				require.Equal(t, all[i], m.N)
				require.True(t, json.Valid(m.Content))
			}
		}
		return all, s
	}
	got, s := read()
	assert.Equal(t, want, got)
	_, err := s.append(Stored{N: 77, At: time.Now(), Type: "user", Content: message(7).Raw})
	require.NoError(t, err)
	require.NoError(t, s.close())
	got, s = read()
	assert.Equal(t, append(want, 77), got)
	require.NoError(t, s.close())
}

// TestSpoolOfAnyBytes opens whatever a disk may have made of a spool. It is no fuzz
// target: SQLite, which this package links, takes minutes to build for fuzzing.
func TestSpoolOfAnyBytes(t *testing.T) {
	head, err := spoolHead{Session: "ses-1"}.line()
	require.NoError(t, err)
	whole := lines(6)[len(head):]
	path := filepath.Join(t.TempDir(), "spool")
	for seed := range uint64(long.Rounds(300, 3000)) {
		content := damaged(rand.New(rand.NewPCG(seed, 0)), whole)
		require.NoError(t, os.WriteFile(path, append(bytes.Clone(head), content...), 0o600))
		var found []int64
		s, err := openSpool(path, "ses-1", false, func(m Stored, _ int64) { found = append(found, m.N) })
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, s.close())
		requireGoesOn(t, path, found)
		if t.Failed() {
			t.Fatalf("seed %d: %q", seed, content)
		}
	}
}

// damaged is a part of content with a few changes.
func damaged(r *rand.Rand, content []byte) []byte {
	content = bytes.Clone(content[:r.IntN(len(content)+1)])
	for range r.IntN(4) {
		if len(content) == 0 {
			break
		}
		at := r.IntN(len(content))
		switch r.IntN(4) {
		case 0:
			content[at] = byte(r.IntN(256))
		case 1:
			content[at] = '\n'
		case 2:
			clear(content[at:min(at+r.IntN(300), len(content))])
		default:
			content = append(content[:at:at], content[r.IntN(len(content)):]...)
		}
	}
	return content
}
