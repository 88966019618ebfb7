package program_test

import (
	"encoding/binary"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
)

// wide encodes units, valid or not, as UTF-16 or UTF-32 with a byte order mark.
func wide(order binary.AppendByteOrder, size int, units ...rune) string {
	b := []byte{}
	for _, u := range append([]rune{0xFEFF}, units...) {
		if size == 2 {
			b = order.AppendUint16(b, uint16(u))
		} else {
			b = order.AppendUint32(b, uint32(u))
		}
	}
	return string(b)
}

func TestText(t *testing.T) {
	long := strings.Repeat("上海 \U0001F600 \ufffd\r\n", 10_000)
	for _, text := range []string{"", "a", "name a river\r\n", "a\x00b", "\ufeffa", long} {
		runes, units := []rune(text), []rune{}
		for _, u := range utf16.Encode(runes) {
			units = append(units, rune(u))
		}
		for form, in := range map[string]string{
			"UTF-8 with a mark": "\ufeff" + text,
			"UTF-16, little":    wide(binary.LittleEndian, 2, units...), "UTF-16, big": wide(binary.BigEndian, 2, units...),
			"UTF-32, little": wide(binary.LittleEndian, 4, runes...), "UTF-32, big": wide(binary.BigEndian, 4, runes...),
		} {
			got, err := program.InUTF8([]byte(in), nil)
			require.NoError(t, err, form)
			assert.Equal(t, text, string(got), form)
		}
	}
	for _, as := range []string{"", "a", "text\n", "caf\xe9", "\xff", "\x00\x00", long} {
		got, err := program.InUTF8([]byte(as), nil)
		require.NoError(t, err)
		assert.Equal(t, as, string(got))
	}
}

// As in an inbox, invalid text becomes U+FFFD.
func TestTextThatIsNoSuchThing(t *testing.T) {
	for name, in := range map[string]string{
		"cut off":     "\xff\xfea\x00b",
		"half a pair": wide(binary.LittleEndian, 2, 'a', 0xD83D),
		"no rune":     wide(binary.LittleEndian, 4, 'a', 0x110000),
	} {
		got, err := program.InUTF8([]byte(in), nil)
		require.NoError(t, err, name)
		assert.Equal(t, "a\ufffd", string(got), name)
	}
	_, err := program.InUTF8(nil, io.ErrClosedPipe)
	assert.Equal(t, io.ErrClosedPipe, err)
}

func TestReadTextIsBounded(t *testing.T) {
	zeros, err := os.Open("/dev/zero") // it has no end
	require.NoError(t, err)
	defer func() { assert.NoError(t, zeros.Close()) }()
	_, err = program.ReadText([]string{"-"}, "", 1<<20, cli.Streams{In: zeros})
	assert.ErrorContains(t, err, "stdin has more than 1048576 bytes (1.0 MB), which is the most that an entry has")
}
