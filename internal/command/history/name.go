package history

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"heartbeat/internal/lines"
)

// minPrefix is how many characters of a name are enough.
const minPrefix = 4

// word is what somebody calls a thing.
type word string

// fit is how well a word fits a thing. An id beats a name from heartbeat, since senders may choose any id, and both
// beat a prefix.
type fit int

const (
	fitsNot fit = iota
	fitsBeginning
	fitsOwn
	fitsID
)

// match is how an entry fits, and its name where only the name's beginning does.
type match struct {
	fit
	name string
}

// fits compares the word with a thing's id, which may be empty, and the names that heartbeat gives it. A trailing "…",
// with which lists cut a name, is no part of the name's beginning.
func (w word) fits(id string, own ...string) fit {
	text := string(w)
	begin := strings.TrimSuffix(text, "…")
	begins := func(name string) bool { return strings.HasPrefix(name, begin) }
	switch {
	case text == "":
		return fitsNot
	case text == id:
		return fitsID
	case slices.Contains(own, text):
		return fitsOwn
	case utf8.RuneCountInString(begin) >= minPrefix && (begins(id) || slices.ContainsFunc(own, begins)):
		return fitsBeginning
	}
	return fitsNot
}

// names reports, without decoding the line, whether the word fits the names in it.
func (w word) names(line []byte) bool {
	return w.fits(gjson.GetBytes(line, "id").String(), gjson.GetBytes(line, "entry_id").String()) != fitsNot
}

// namesRaw is names for a line of the queue, whose entry id is its hash.
func (w word) namesRaw(line []byte) bool {
	hash := ""
	if strings.Trim(strings.TrimSuffix(string(w), "…"), "0123456789abcdef") == "" {
		hash = lines.ID(line)
	}
	return w.fits(gjson.GetBytes(line, "id").String(), hash) != fitsNot
}

// Names are the names of a thing: its sender's id, which may be empty, and then those that heartbeat gives it.
type Names []string

// Resolve returns what a word means: the things that it fits best. Several mean that the word is ambiguous.
func Resolve[T any](text string, all []T, namesOf func(T) Names) (found []T) {
	best := fitsNot
	for _, t := range all {
		n := namesOf(t)
		how := word(text).fits(n[0], n[1:]...)
		if how > best {
			best, found = how, nil
		}
		if how == best && how != fitsNot {
			found = append(found, t)
		}
	}
	return found
}

// MayBeNamed reports whether any of the words may name a thing with these names.
func MayBeNamed(words []string, n Names) bool {
	return slices.ContainsFunc(words, func(text string) bool { return word(text).fits(n[0], n[1:]...) != fitsNot })
}
