package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// minPrefix is how much of a name stands for the whole of it.
const minPrefix = 4

// word is what somebody calls an entry.
type word struct {
	text string
	// plain: no JSON string has to escape anything of it, so that it stands in a
	// line as it is, or with \u.
	plain bool
	// digest: it may be the beginning of an entry id, which raw lines lack.
	digest []byte
	odd    bool // hex digits, and half a byte more
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

// fit is how well a word fits an entry. An id comes before an entry id, since
// whoever chose it may have chosen anything, and both before a beginning.
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

// mayHold leaves out, without decoding it, a line of JSON that cannot have the
// word in a string; whole asks for no more than strings that end with it.
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

// mayName leaves out a line of the queue, whose entry id is its own hash.
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
