package costs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
	"unique"
)

// maxValue is how many bytes of a value are kept; a value may have megabytes.
const maxValue = 200

// valueOf is the name of a metadata value as a group: a string as it is, other JSON as it is spelt. null has none.
// A long value is cut, and its sum tells it from others with the same beginning.
func valueOf(raw json.RawMessage) (value string, there bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "", false
	}
	value = string(raw)
	var text string
	var spelt bytes.Buffer
	switch {
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		value = text
	case json.Compact(&spelt, raw) == nil:
		value = spelt.String()
	}
	value = strings.ToValidUTF8(value, "\uFFFD")
	if len(value) <= maxValue {
		return value, true
	}
	sum, end := sha256.Sum256([]byte(value)), maxValue
	for !utf8.RuneStart(value[end]) {
		end--
	}
	return fmt.Sprintf("%s… (sha256 %x)", value[:end], sum[:6]), true
}

// Describe adds an entry's metadata. Only the first call for an entry counts, and only when grouping by metadata.
func (s *Sum) Describe(entryID string, metadata map[string]json.RawMessage) {
	if _, known := s.values[entryID]; known || !s.booked[entryID] {
		return
	}
	var of unique.Handle[string]
	if value, there := valueOf(metadata[s.by.Key()]); there {
		of = unique.Make(value)
	}
	s.values[strings.Clone(entryID)] = of
}

// byValue merges the groups of entries into groups of values.
func (s *Sum) byValue() []*Group {
	type key struct {
		kind Kind
		name string
	}
	merged := map[key]*Group{}
	for _, g := range s.groups {
		value, known := s.values[g.EntryID]
		k := key{Named, ""}
		switch {
		case !known:
			k.kind = Gone
		case value == unique.Handle[string]{}:
			k.kind = Absent
		default:
			k.name = value.Value()
		}
		if merged[k] == nil {
			merged[k] = &Group{Kind: k.kind, Name: k.name}
		}
		merged[k].merge(g)
	}
	return slices.Collect(maps.Values(merged))
}
