package inbox

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"heartbeat/internal/lines"
)

// RawLine is an entry's line as it was in the inbox, without its line end, in a
// form that JSON can carry.
type RawLine struct {
	// Text is the line, with U+FFFD for bytes that are not UTF-8.
	Text string `json:"raw_line"`
	// Base64 is the exact bytes, set only if Text had to change them.
	Base64 string `json:"raw_base64,omitempty"`
}

func rawLineOf(b []byte) RawLine {
	if utf8.Valid(b) {
		return RawLine{Text: string(b)}
	}
	return RawLine{Text: toUTF8(b), Base64: base64.StdEncoding.EncodeToString(b)}
}

// Bytes is the exact line.
func (r RawLine) Bytes() ([]byte, error) {
	if r.Base64 == "" {
		return []byte(r.Text), nil
	}
	b, err := base64.StdEncoding.DecodeString(r.Base64)
	if err != nil {
		return nil, fmt.Errorf("raw_base64: %w", err)
	}
	return b, nil
}

func toUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// entryID names an entry by its line, without the line end.
func entryID(raw []byte) string { return lines.ID(raw) }
