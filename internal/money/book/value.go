package book

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"heartbeat/internal/flat"
	"heartbeat/internal/words"
)

const maxValue = 200 // how many bytes of a value are kept; a value may have megabytes

// valueOf returns the name of a metadata value as a group: a string as it is, other JSON as it is spelt. null has none. A
// long value is cut, and its sum distinguishes it from others with the same beginning.
func valueOf(raw json.RawMessage) (name string, there bool) {
	var spelt bytes.Buffer
	if len(raw) == 0 || json.Compact(&spelt, raw) != nil || spelt.String() == "null" {
		return "", false
	}
	name = strings.ToValidUTF8(flat.Value(spelt.String()).Shown(), "\uFFFD")
	if len(name) <= maxValue {
		return name, true
	}
	sum, end := sha256.Sum256([]byte(name)), words.WholeRunes([]byte(name[:maxValue]))
	return fmt.Sprintf("%s… (sha256 %x)", name[:end], sum[:6]), true
}

// value is an entry's metadata value, named like its group.
type value struct {
	kind Kind // Gone until somebody describes the entry
	name string
}

// Describe adds an entry's metadata. Only the first call for an entry counts, and only when grouping by metadata.
func (s *Sum) Describe(entryID string, metadata map[string]json.RawMessage) {
	if s.values[entryID].kind != Gone { // it is described, or has no lines
		return
	}
	of := value{kind: Absent}
	if name, there := valueOf(metadata[s.by.Key()]); there {
		of = value{Named, unique.Make(name).Value()}
	}
	s.values[strings.Clone(entryID)] = of
}

// byValue merges the groups of entries into groups of values.
func (s *Sum) byValue() []*Group {
	merged := map[value]*Group{}
	for _, g := range s.groups {
		of := s.values[g.EntryID]
		m := cmp.Or(merged[of], &Group{Kind: of.kind, Name: of.name})
		m.Spent, m.Entries = m.Spent.Plus(g.Spent), m.Entries+g.Entries
		merged[of] = m
	}
	return slices.Collect(maps.Values(merged))
}
