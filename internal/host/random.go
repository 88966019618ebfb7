package host

import (
	"encoding/base32"
	"fmt"
	"io"
	"os"
	"strings"
)

// RandomName returns 26 random characters (128 bits), so a name that is unique. It
// reads the kernel's source itself, since linking crypto/rand would slow down every
// start of the hook.
func RandomName() (string, error) {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	var b [16]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return "", fmt.Errorf("draw a random name: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])), nil
}
