package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxKey is how many bytes an encoded name may have: with a prefix and a second name it
// stays under the 255 bytes that a server takes for a consumer.
const maxKey = 160

const upperHex = "0123456789ABCDEF"

// Key is a message's id, of any bytes, as a key of a bucket and as one token of a subject:
// letters, digits, - and _ as they are, each other byte as =XX. An id that gets longer
// than 160 bytes by that is =h and the first 32 hex digits of its SHA-256, and no id at
// all is =e. Different ids have different keys.
func Key(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', upperHex[c>>4], upperHex[c&15]})
		}
		if b.Len() > maxKey {
			sum := sha256.Sum256([]byte(id))
			return "=h" + hex.EncodeToString(sum[:16])
		}
	}
	if b.Len() == 0 {
		return "=e"
	}
	return b.String()
}

// Token is the name of an agent, or a filter subject, in the same spelling.
func Token(name string) string { return Key(name) }

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
