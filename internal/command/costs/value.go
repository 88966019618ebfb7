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
)

// maxValue is how many bytes of a value are kept, which may have megabytes.
const maxValue = 200

// valueOf is what a member of metadata is called as a group: a string as it is, other
// JSON as it is spelt. There is none for null. A long one is cut, and told from others
// of the same beginning by its sum.
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

// values are what the entries' metadata says about one key.
type values struct {
	key  string
	of   map[string]*string // by entry id; nil where the metadata lacks the key
	same map[string]*string // each value once
}

// Wanted reports whether the metadata of that entry is still looked for.
func (s *Sum) Wanted(entryID string) bool {
	if s.values == nil || !s.booked[entryID] {
		return false
	}
	_, known := s.values.of[entryID]
	return !known
}

// Describe gives an entry's metadata. It matters only by metadata.
func (s *Sum) Describe(entryID string, metadata map[string]json.RawMessage) {
	if !s.Wanted(entryID) {
		return
	}
	v, entryID := s.values, strings.Clone(entryID)
	value, there := valueOf(metadata[v.key])
	if !there {
		v.of[entryID] = nil
		return
	}
	if v.same[value] == nil {
		value = strings.Clone(value)
		v.same[value] = &value
	}
	v.of[entryID] = v.same[value]
}

// byValue merges the groups of entries into those of their values.
func (s *Sum) byValue() []*Group {
	type key struct {
		kind Kind
		name string
	}
	merged := map[key]*Group{}
	for _, g := range s.groups {
		value, known := s.values.of[g.EntryID]
		k := key{Named, ""}
		switch {
		case !known:
			k.kind = Gone
		case value == nil:
			k.kind = Absent
		default:
			k.name = *value
		}
		if merged[k] == nil {
			merged[k] = &Group{Kind: k.kind, Name: k.name}
		}
		merged[k].merge(g)
	}
	return slices.Collect(maps.Values(merged))
}
