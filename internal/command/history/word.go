package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// minPrefix is how many characters of a name are enough.
const minPrefix = 4

// word is what somebody calls an entry.
type word struct {
	text string
	// plain says that JSON need not escape any of it, so a line has it as it is or with
	// \u escapes.
	plain bool
	// digest is set if the word may begin an entry id, which raw lines do not contain.
	digest []byte
	odd    bool // it has half a byte more
	last   byte
}

func newWord(text string) word {
	w := word{text: text, plain: !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == '"' || r == '\\' || r == '/' || r == utf8.RuneError
	})}
	if len(text) < minPrefix || len(text) > 2*sha256.Size || strings.ToLower(text) != text {
		return w
	}
	even := text[:len(text)/2*2]
	digest, err := hex.DecodeString(even)
	if err != nil {
		return w
	}
	if w.odd = len(even) < len(text); w.odd {
		half, err := hex.DecodeString(text[len(even):] + "0")
		if err != nil {
			return w
		}
		w.last = half[0]
	}
	w.digest = digest
	return w
}

// fit is how well a word fits an entry. An id goes before an entry id, since senders
// may choose anything, and both go before a beginning.
type fit int

const (
	fitsNot fit = iota
	fitsBeginning
	fitsEntryID
	fitsID
)

func (w word) fits(id, entryID string) fit {
	switch {
	case w.text == id && id != "":
		return fitsID
	case w.text == entryID:
		return fitsEntryID
	case utf8.RuneCountInString(w.text) < minPrefix:
		return fitsNot
	case strings.HasPrefix(id, w.text), strings.HasPrefix(entryID, w.text):
		return fitsBeginning
	}
	return fitsNot
}

// mayHold reports, without decoding, whether a line of JSON may have the word in a
// string. With whole, only at the end of a string.
func (w word) mayHold(line []byte, whole bool) bool {
	needle := w.text
	if whole {
		needle += `"`
	}
	switch {
	case bytes.Contains(line, []byte(needle)):
		return true
	case w.plain:
		return bytes.Contains(line, []byte(`\u`))
	}
	return bytes.IndexByte(line, '\\') >= 0 || strings.ContainsRune(w.text, utf8.RuneError)
}

// mayName is mayHold for a line of the queue, whose entry id is its hash.
func (w word) mayName(line []byte, whole bool) bool {
	if w.mayHold(line, whole) {
		return true
	}
	if w.digest == nil || whole && len(w.digest) < sha256.Size {
		return false
	}
	sum := sha256.Sum256(line)
	if !bytes.HasPrefix(sum[:], w.digest) {
		return false
	}
	return !w.odd || sum[len(w.digest)]&0xF0 == w.last
}
