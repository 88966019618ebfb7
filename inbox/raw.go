package inbox

import (
	"bytes"
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

// wideMeans is what the dead letter of a wide line says.
const wideMeans = "it is a line of UTF-16 or UTF-32, as PowerShell's > and >> write it, or stands in an inbox that begins so: " +
	"save the text as UTF-8 and send that, or send the file: `heartbeat send --batch FILE --format lines` reads one that begins with a byte order mark"

// wide reports whether a line is a part of UTF-16 or UTF-32. It cannot be taken for text: a
// file of that is not divided into lines at the bytes of a line break, which other characters
// have as well, so that an agent might be told something else. What is left of such a
// character may be plain letters: in a file that begins so, only JSON is no part of it.
func (t *Tx) wide(raw []byte) bool {
	zeros := bytes.Count(raw, []byte{0})
	switch text := bytes.TrimSpace(raw); {
	case wideMark(raw):
		return true
	case zeros == 0 && len(text) > 0 && (text[0] == '{' || text[0] == '"') && utf8.Valid(raw):
		return false
	case t.beginsWide():
		return true
	case zeros == 0:
		return false
	}
	for i, c := range raw {
		if c == 0 && i%2 == 0 {
			return false
		}
	}
	return len(raw)%2 == 0 && (4*zeros >= len(raw) || bytes.HasSuffix(raw, []byte("\r\x00")))
}

// beginsWide reports whether the inbox itself does.
func (t *Tx) beginsWide() bool {
	var first [4]byte
	n, _ := t.file.ReadAt(first[:], 0) // a file that is shorter begins otherwise
	return wideMark(first[:n])
}

// wideMark reports whether bytes begin with the byte order mark of UTF-16 or UTF-32.
func wideMark(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte{0, 0})
	return len(b) >= 2 && (b[0] == 0xFF && b[1] == 0xFE || b[0] == 0xFE && b[1] == 0xFF)
}

func toUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// entryID names an entry by its line, without the line end.
func entryID(raw []byte) string { return lines.ID(raw) }
