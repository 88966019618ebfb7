package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"heartbeat/internal/words"
)

// maxInline limits each part of a task in a text, in bytes. The task file has all of it.
const maxInline = 16 << 10

type writer struct{ strings.Builder }

func (w *writer) line(parts ...string) {
	for _, p := range parts {
		w.WriteString(p)
	}
	w.WriteByte('\n')
}

// gap writes an empty line, unless the text ends with one.
func (w *writer) gap() {
	if s := w.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		w.WriteByte('\n')
	}
}

// fence encloses a text from outside in more ticks than any run of ticks in the text.
func (w *writer) fence(language, s string) {
	ticks := "```"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	w.gap()
	w.line(ticks, language)
	w.line(strings.TrimSuffix(s, "\n"))
	w.line(ticks)
	w.gap()
}

// command writes a shell line to copy.
func (w *writer) command(args ...string) {
	w.gap()
	w.line("    ", words.Shell(args...))
	w.gap()
}

// name returns a name from outside, safe on one line.
func name(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:", r)
	}
	if s != "" && len(s) <= 200 && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return fmt.Sprintf("%q", cut(s, 200))
}

// cut shortens a text to at most n bytes, at the end of a rune.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:words.WholeRunes([]byte(s[:n]))]
	}
	return s
}

func (w *writer) part(name, s string) {
	if s == "" {
		return
	}
	w.gap()
	w.line(name, ":")
	language := ""
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		language = "json"
	}
	w.block(language, s)
}

// block writes a fenced text, JSON indented, or only the beginning of one that is too long.
func (w *writer) block(language, s string) {
	if s == "" {
		return
	}
	if len(s) > maxInline {
		w.fence("", cut(s, maxInline/4))
		w.line("That is only the beginning: the rest of these ", strconv.Itoa(len(s)), " bytes is in the task file.")
		w.gap()
		return
	}
	var b bytes.Buffer
	if language == "json" && json.Indent(&b, []byte(s), "", "  ") == nil {
		s = b.String()
	}
	w.fence(language, s)
}

// list returns a line for each item of a list, and any other value as [text] does.
func list(v gjson.Result) string {
	if !v.IsArray() {
		return text(v)
	}
	var lines []string
	for _, item := range v.Array() {
		lines = append(lines, "- "+text(item))
	}
	return strings.Join(lines, "\n")
}

// text returns a string without its quotes, and any other value as JSON.
func text(v gjson.Result) string {
	if v.Type == gjson.String {
		return strings.TrimSpace(v.Str)
	}
	return v.Raw
}
