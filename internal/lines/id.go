package lines

import (
	"crypto/sha256"
	"encoding/hex"
)

// ID names a line: the hex SHA-256 of its bytes without the line end.
func ID(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
