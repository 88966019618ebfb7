package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWordNamesARawLine(t *testing.T) {
	line := []byte("one")
	sum := sha256.Sum256(line)
	id := hex.EncodeToString(sum[:])
	for n := minPrefix; n <= len(id); n++ {
		assert.True(t, word(id[:n]).namesQueued(line), id[:n])
		other := id[:n-1] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", id[n-1])+1)%16])
		assert.False(t, word(other).namesQueued(line), other)
	}
	assert.False(t, word(id[:3]).namesQueued(line))
	assert.False(t, word(strings.ToUpper(id)).namesQueued(line))
}

// FuzzWordLeavesNothingOut holds that a line which has the word as its id, however
// JSON may spell it, is decoded.
func FuzzWordLeavesNothingOut(f *testing.F) {
	f.Add("job-1", "0", uint8(0))
	f.Add(`a"b\c/d`, "é☃\x00", uint8(0xff))
	f.Add("\ufffd", "", uint8(1))
	f.Fuzz(func(t *testing.T, text, more string, spelling uint8) {
		id := strings.ToValidUTF8(text+more, "\ufffd")
		spelled, err := json.Marshal(id)
		require.NoError(t, err)
		if spelling&1 != 0 {
			spelled = []byte(`"`)
			for i, r := range id {
				switch {
				case r >= 0x10000 || r == '"' || r == '\\' || r < ' ':
					quoted, err := json.Marshal(string(r))
					require.NoError(t, err)
					spelled = append(spelled, quoted[1:len(quoted)-1]...)
				case uint8(i)&spelling == 0:
					spelled = fmt.Appendf(spelled, `\u%04x`, r)
				default:
					spelled = append(spelled, string(r)...)
				}
			}
			spelled = append(spelled, '"')
		}
		line := []byte(`{"id":` + string(spelled) + `,"prompt":"x"}`)
		w := word(text)
		assert.Equal(t, w.fits(id, "") != fitsNot, w.namesLine(line), "%q in %s", text, line)
		if w.fits(id, "") != fitsNot {
			assert.True(t, w.namesQueued(line), "%q in %s", text, line)
		}
	})
}
