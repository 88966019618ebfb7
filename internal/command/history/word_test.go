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
		assert.True(t, newWord(id[:n]).mayName(line, false), id[:n])
		other := id[:n-1] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", id[n-1])+1)%16])
		assert.False(t, newWord(other).mayName(line, false), other)
	}
	assert.True(t, newWord(id).mayName(line, true))
	assert.False(t, newWord(id[:63]).mayName(line, true), "only the whole of it is asked for")
	assert.False(t, newWord(id[:3]).mayName(line, false))
	assert.False(t, newWord(strings.ToUpper(id)).mayName(line, false))
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
		w := newWord(text)
		if text != "" && w.fits(id, "") != fitsNot {
			assert.True(t, w.mayHold(line, false), "%q in %s", text, line)
		}
		if w.fits(id, "") == fitsID {
			assert.True(t, w.mayHold(line, true), "%q in %s", text, line)
		}
	})
}
