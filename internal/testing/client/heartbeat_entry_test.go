package client

import (
	"encoding/json"
	"fmt"
	"strings"
)

// entry is one line of an inbox and what should become of it.
type entry struct {
	tag  string
	line string // without its newline
	text string // what the model should get
	id   string // an envelope's
}

// verbatim is a line that is delivered as it stands.
func verbatim(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n)}
	e.line = fmt.Sprintf("do <this> & 'that' \"now\" with $HOME %s", e.tag)
	e.text = e.line
	return e
}

// quoted is a JSON string with everything that needs escaping.
func quoted(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n)}
	e.text = fmt.Sprintf("first \"line\"\n\tsecond \\ line é 🚀 \u2028 %s", e.tag)
	e.line = asJSON(e.text)
	return e
}

// envelope has an id and metadata.
func envelope(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n), id: fmt.Sprintf("job-%d", n)}
	e.text = fmt.Sprintf("in an envelope\nwith two lines %s", e.tag)
	e.line = asJSON(map[string]any{"prompt": e.text, "id": e.id, "from": "a test", "n": n})
	return e
}

// object is a JSON object that is no envelope.
func object(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n)}
	e.line = fmt.Sprintf(`{"task": "%s", "prompts": ["a", null], "deep": {"n": 1.50}}`, e.tag)
	e.text = e.line
	return e
}

// some entries, numbered from 1 up, of one form or of all in turn.
func some(n int, forms ...func(int) entry) []entry {
	if len(forms) == 0 {
		forms = []func(int) entry{verbatim, quoted, envelope}
	}
	var all []entry
	for i := range n {
		all = append(all, forms[i%len(forms)](i+1))
	}
	return all
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return string(raw)
}

// large is a megabyte whose parts differ, so that none can be left out unseen.
func large(n int) entry {
	e := entry{tag: fmt.Sprintf("[e%d]", n)}
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "part %d of %d é\n", i, n)
	}
	e.text = b.String() + e.tag
	e.line = asJSON(e.text)
	return e
}

// prompt is the nth thing that a person says.
func prompt(n int) string { return fmt.Sprintf("begin [p%d]", n) }
