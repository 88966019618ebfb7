package see

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"heartbeat/internal/words"
)

// Command spells a command line of heartbeat about the inbox. One that would act on the
// terminal it is pasted into is refused: then it is that of status.
func Command(inbox string, args ...string) string {
	verb := strings.Fields(args[0]) // "run status" is one verb of two words
	all := append(append([]string{"heartbeat"}, append(verb, args[1:]...)...), "--inbox", inbox)
	if text := words.Shell(all...); text == words.Line(text) {
		return text
	}
	return words.Line(words.Shell("heartbeat", "status", "--inbox", inbox))
}

// Key is the same for the same parts, and short.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
