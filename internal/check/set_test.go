package check_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/check"
)

func TestFor(t *testing.T) {
	named := []check.Command{{Name: "tests", Line: "make test"}, {Name: "lint", Line: "make lint"}}
	all := append([]check.Command{{Name: check.Default, Line: "true"}}, named...)
	for name, c := range map[string]struct {
		set         check.Set
		asked, want []string
		err         string
	}{
		"none at all":             {},
		"the default":             {set: check.Set{Commands: all}, want: []string{"check"}},
		"no default":              {set: check.Set{Commands: named}},
		"named":                   {set: check.Set{Commands: all}, asked: []string{"lint", "tests"}, want: []string{"lint", "tests"}},
		"the default by name":     {set: check.Set{Commands: all}, asked: []string{"check", "lint"}, want: []string{"check", "lint"}},
		"none":                    {set: check.Set{Commands: all}, asked: []string{"none"}, err: "none takes its --check-none"},
		"none, allowed":           {set: check.Set{Commands: all, Optional: true}, asked: []string{"none"}},
		"none, without default":   {set: check.Set{Commands: named}, asked: []string{"none"}},
		"none and another":        {set: check.Set{Commands: all, Optional: true}, asked: []string{"none", "lint"}, err: `no check "none"`},
		"unknown":                 {set: check.Set{Commands: named}, asked: []string{"lnit"}, err: `there is no check "lnit": the wiring has tests, lint`},
		"unknown, and none known": {asked: []string{"lint"}, err: "the wiring has none"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.set.For(c.asked)
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParse(t *testing.T) {
	c, err := check.Parse("tests=make A=b test")
	require.NoError(t, err)
	assert.Equal(t, check.Command{Name: "tests", Line: "make A=b test"}, c)
	for _, text := range []string{"", "tests", "tests=", "=make", "a b=make", "none=true", strings.Repeat("x", 65) + "=true"} {
		_, err := check.Parse(text)
		assert.Error(t, err, text)
	}
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		line    string
		verdict check.Verdict
		why     string
		tail    string
	}{
		"passes":             {line: "echo fine", verdict: check.Passed, tail: "fine"},
		"fails":              {line: "echo no; exit 3", verdict: check.Failed, why: "exit status 3", tail: "no"},
		"is not there":       {line: "no-such-command-at-all", verdict: check.Failed, why: "exit status 127", tail: "no-such-command-at-all: not found"},
		"has its own status": {line: "exit 255", verdict: check.Failed, why: "exit status 255"},
		"asks to come later": {line: "exit 75", verdict: check.Unable, why: "exit status 75"},
		"ended by a signal":  {line: "kill -9 $$", verdict: check.Unable, why: "a signal ended it"},
		"its command was":    {line: "sh -c 'kill -9 $$'; exit $?", verdict: check.Unable, why: "a signal ended it (exit status 137)"},
		"takes too long":     {line: "sleep 1000", verdict: check.Unable, why: "longer than"},
		"floods":             {line: "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end", verdict: check.Passed, tail: "\nend"},
		"is told":            {line: `echo "$HEARTBEAT_CHECK $HEARTBEAT_TRY $HEARTBEAT_ATTEMPT $HEARTBEAT_ID"; pwd`, verdict: check.Passed, tail: "check 2 1 job\n"},
		"odd characters":     {line: `printf '\033[31mred\000\377\r\nb\rc'`, verdict: check.Passed, tail: "\\u001b[31mred\\u0000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if name == "takes too long" {
				limit = 50 * time.Millisecond
			}
			s := check.Set{Commands: []check.Command{{Name: "check", Line: c.line}}, Timeout: limit}
			o := s.Run(t.Context(), []string{"check"}, check.Turn{ID: "job", Reply: strings.Repeat("é", 100_000), Prompt: "a\x00b", Attempt: 1, Try: 2}, t.TempDir())
			assert.Equal(t, c.verdict, o.Verdict, o)
			assert.Contains(t, o.Why, c.why)
			assert.Contains(t, o.Tail, c.tail)
			assert.LessOrEqual(t, len(o.Tail), check.MaxTail)
			assert.Equal(t, "check", o.Name)
		})
	}
}

func TestRunInOrder(t *testing.T) {
	dir := t.TempDir()
	s := check.Set{Timeout: time.Minute, Commands: []check.Command{{Name: "a", Line: "cat > told"}, {Name: "b", Line: "false"}, {Name: "c", Line: "touch c"}}}
	o := s.Run(t.Context(), []string{"a", "b", "c"}, check.Turn{EntryID: "e", Prompt: "p", Reply: "r", Metadata: map[string]json.RawMessage{"pr": json.RawMessage("17")}}, dir)
	assert.Equal(t, check.Failed, o.Verdict)
	assert.Equal(t, "b", o.Name)
	assert.NoFileExists(t, filepath.Join(dir, "c"))
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"check":"a","entry_id":"e","prompt":"p","metadata":{"pr":17},"reply":"r","attempt":0,"try":0}`, string(told))
	o = s.Run(t.Context(), []string{"a", "c"}, check.Turn{}, dir)
	assert.Equal(t, "a,c", o.Name)
	o = s.Run(t.Context(), []string{"gone"}, check.Turn{}, dir)
	assert.True(t, o.Lacking)
	o = s.Run(t.Context(), []string{"a"}, check.Turn{}, filepath.Join(dir, "nowhere"))
	assert.Equal(t, check.Unable, o.Verdict)
	assert.Contains(t, o.Why, "could not be started in")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, check.Unable, s.Run(ended, []string{"a"}, check.Turn{}, dir).Verdict)
}
