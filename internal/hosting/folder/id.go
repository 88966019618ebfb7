package folder

import (
	"errors"
	"fmt"
	"strconv"
)

// MaxID is the longest session id, in bytes.
const MaxID = 128

// CheckID returns an error that says what is wrong with a session id. Ids become
// the names of files: they consist of ASCII letters, digits, dots, underscores and
// hyphens, begin with a letter or digit, and have at most [MaxID] bytes.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("must not be empty")
	case len(id) > MaxID:
		return fmt.Errorf("must have at most %d characters, and has %d", MaxID, len(id))
	case !isAlnum(id[0]):
		return errors.New("must begin with a letter or a digit, since files are named after it")
	}
	for _, r := range id {
		if r > 127 || !isAlnum(byte(r)) && r != '.' && r != '_' && r != '-' {
			return fmt.Errorf("must consist of letters, digits, '.', '_' and '-', since files are named after it, and has %s", strconv.QuoteRuneToASCII(r))
		}
	}
	return nil
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
