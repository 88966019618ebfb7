package guild

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkReadEnvelope(b *testing.B) {
	message := `{"type":"assistant","message":{"content":[{"type":"text","text":"` + strings.Repeat("word \\\" ", 400) + `"}]}},`
	text := []byte(`{"sessionId":"s","status":"completed","transcript":[` + strings.Repeat(message, 4000) + `{}]}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, err := ReadEnvelope(bytes.NewReader(text))
		require.NoError(b, err)
	}
}
