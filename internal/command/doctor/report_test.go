package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/orchestrate"
)

func TestNothingWrong(t *testing.T) {
	w := newWorld(t)
	all := Run(w.Input)
	for _, c := range all {
		if c.Name != "file-system" { // the machine's own
			assert.Equal(t, OK, c.State, "%+v", c)
		}
	}
	names := map[string]bool{}
	for _, c := range all {
		names[c.Name] = true
	}
	for _, name := range []string{
		"settings", "wired", "events", "others", "binary", "flags", "timeout", "cap", "hooks-on", "trust", "onboarding",
		"environment", "client", "directory", "inbox", "file-system", "leftovers", "state",
	} {
		assert.True(t, names[name], name)
	}
}

// Nothing is there at all: no home, no project settings, no inbox.
func TestNothingThere(t *testing.T) {
	all := Run(Input{Driven: orchestrate.Driven, Project: t.TempDir(), Managed: "/nowhere"})
	assert.NotZero(t, Count(all, Fail))
	assert.NotEmpty(t, all)
}

func TestReportIsPrinted(t *testing.T) {
	e := &examination{}
	e.as("wired").note(OK, "", "a\nb")
	e.as("cap").warn("do <this>", "because of %s", "that")
	e.as("trust").fail("x\ty", "no")
	all := e.found
	var text, lines strings.Builder
	require.NoError(t, WriteText(layout.For(&text, layout.Never), all))
	assert.Equal(t, "ok    wired        a b\n"+
		"warn  cap          because of that\n"+
		"                   fix: do <this>\n"+
		"fail  trust        no\n"+
		"                   fix: x y\n", text.String())
	for _, c := range all {
		require.NoError(t, cli.PrintJSON(&lines, c))
	}
	assert.Equal(t, `{"check":"wired","state":"ok","evidence":"a\nb","fix":""}
{"check":"cap","state":"warn","evidence":"because of that","fix":"do <this>"}
{"check":"trust","state":"fail","evidence":"no","fix":"x\ty"}
`, lines.String())
	assert.Equal(t, 1, Count(all, Fail))
}

func TestQuote(t *testing.T) {
	assert.Equal(t, `heartbeat-stop --inbox '/a b/c' '' 'it'\''s' '$X' --x=1`, quote("heartbeat-stop", "--inbox", "/a b/c", "", "it's", "$X", "--x=1"))
}

func TestShow(t *testing.T) {
	in := Input{Project: "/p"}
	assert.Equal(t, ".claude/settings.json", in.show("/p/.claude/settings.json"))
	assert.Equal(t, "/q/x", in.show("/q/x"))
	assert.Equal(t, "/pp", in.show("/pp"))
}

// docs/operate.md has the very list of the checks.
func TestTableOfTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/operate.md")
	require.NoError(t, err)
	_, doctors, found := strings.Cut(string(doc), "\n- `troubles`: ")
	require.True(t, found)
	doctors, _, _ = strings.Cut("- `troubles`: "+doctors, "\n\n")
	var want []string
	for _, r := range table() {
		client := map[scope]string{ofClaude: " (Claude Code)", ofCodex: " (Codex)"}[r.of&(ofClaude|ofCodex)]
		fsck := map[bool]string{true: " *"}[r.of&ofFsck != 0]
		want = append(want, "- `"+r.id+"`"+fsck+": "+r.about+client)
	}
	assert.Equal(t, strings.Join(want, "\n"), doctors)
}

// What fsck looks at is of an inbox alone, and each check has a name of its own.
func TestRows(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range table() {
		assert.False(t, ids[r.id], r.id)
		ids[r.id] = true
		assert.True(t, r.of&ofFsck == 0 || r.of&ofBox != 0 && r.of&ofWiring == 0, r.id)
	}
}
