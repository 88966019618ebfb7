package stream

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/flat"
)

// textFile is the name of a file that an inbox puts a long text into.
var textFile = regexp.MustCompile(`\.entry-[0-9]+-[0-9]+-[0-9a-f]+\.txt`)

// AnyTextFile stands in [Tally.Opened] for all such files: a call named them by a pattern.
const AnyTextFile = ".entry-*"

// maxOpened is how many names of files are remembered.
const maxOpened = 1000

// Opened are the files of long texts that calls of tools named which did not fail: the
// evidence that the client looked at a text that it was told to read.
func (t *Tally) Opened() []string { return slices.Sorted(maps.Keys(t.opened)) }

// names keeps which files of texts a call is about.
func (t *Tally) names(id string, input flat.Value) {
	if !strings.Contains(string(input), ".entry-") || len(t.asked) >= maxOpen {
		return
	}
	found := textFile.FindAllString(string(input), maxOpened)
	for i := range found {
		found[i] = strings.Clone(found[i]) // it does not keep the whole message
	}
	if found == nil {
		found = []string{AnyTextFile}
	}
	if t.asked == nil {
		t.asked = map[string][]string{}
	}
	t.asked[id] = found
}

// answered takes the result of a call.
func (t *Tally) answered(id string, failed bool) {
	for _, name := range t.asked[id] {
		if t.opened == nil {
			t.opened = map[string]bool{}
		}
		if !failed && len(t.opened) < maxOpened {
			t.opened[name] = true
		}
	}
	delete(t.asked, id)
}
