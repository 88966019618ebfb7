package consumer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

const (
	// maxVariables is how much of an entry's metadata goes into the environment; maxVariable is the longest value, in
	// bytes.
	maxVariables, maxVariable = 64, 1 << 10
)

// inputOf returns the command's stdin: one line of JSON.
func inputOf(h *inbox.Handover) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, fmt.Errorf("spell what is handed over of %s: %w", words.Name(h.ID, h.EntryID), err)
	}
	return b.Bytes(), nil
}

// variableName matches the metadata names that become variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// environment returns variables for a script that cannot read JSON. A value is there unchanged or not at all: a value
// made to fit would be another address.
func environment(h *inbox.Handover) []string {
	env := []string{
		"HEARTBEAT_KEY=" + h.Key, "HEARTBEAT_KIND=" + h.Kind, "HEARTBEAT_CONSUMER=" + h.Consumer,
		"HEARTBEAT_INBOX=" + fit(h.Inbox), "HEARTBEAT_ID=" + fit(h.ID), "HEARTBEAT_ENTRY_ID=" + fit(h.EntryID),
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(h.Metadata)) {
		value, is := scalar(h.Metadata[name])
		if is && n < maxVariables && variableName.MatchString(name) && value != "" && fit(value) == value {
			env = append(env, "HEARTBEAT_META_"+name+"="+value)
			n++
		}
	}
	return env
}

// scalar spells a metadata value that is a text, a number, true or false.
func scalar(raw json.RawMessage) (text string, is bool) {
	if json.Unmarshal(raw, &text) == nil && !bytes.Equal(raw, []byte("null")) {
		return text, true
	}
	text = strings.TrimSpace(string(raw))
	return text, text != "" && text != "null" && text[0] != '{' && text[0] != '['
}

// fit returns a text that is one short line without control characters, or "".
func fit(s string) string {
	if len(s) > maxVariable || !utf8.ValidString(s) || words.Line(s) != s || strings.ContainsRune(s, 0) {
		return ""
	}
	return s
}

// spelt returns a kind as people read it.
func spelt(kind string) string { return strings.ReplaceAll(kind, "_", " ") }
