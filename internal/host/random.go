package host

import (
	"fmt"
	"io"
	"os"
)

// letters are those of base32, in lower case.
const letters = "abcdefghijklmnopqrstuvwxyz234567"

// RandomName returns 26 random characters (130 bits), so a name that is unique. It
// reads the kernel's source itself, since linking crypto/rand would slow down every
// start of the hook; so would encoding/base32.
func RandomName() (string, error) {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	var b [26]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	for i := range b {
		b[i] = letters[b[i]%32]
	}
	return string(b[:]), nil
}
