package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/money/price"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ as, program, want string }{
		{"", "claude", "claude"}, {"", "/opt/bin/codex", "codex"}, {"", "./codex-x86_64-unknown-linux-musl", "codex"}, {"", "codex-wrapper", "claude"}, {"", "./wrapper.sh", "claude"},
		{"codex", "./wrapper.sh", "codex"}, {"claude", "codex", "claude"},
	} {
		assert.Equal(t, c.want, Of(c.as, []string{c.program}).Name, c)
	}
	assert.Equal(t, []string{"claude", "codex"}, Names())
}

func TestCodexVerb(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "",
		"exec hello":                        "exec",
		"e hello":                           "e",
		"-m gpt-5 exec hello":               "exec",
		"-m exec hello":                     "",
		"--search exec hello":               "exec",
		"-c model=exec resume --last":       "resume",
		"hello":                             "",
		"-- exec":                           "",
		"--sandbox workspace-write hello x": "",
		"-m":                                "",
	} {
		verb, _, _ := readCodex(strings.Fields(line))
		assert.Equal(t, want, verb, line)
	}
}

func TestCodexResuming(t *testing.T) {
	for line, want := range map[string]string{
		"exec hello":                 "exec resume ID hello",
		"exec --json hello":          "exec --json resume ID hello",
		"exec":                       "exec resume ID",
		"exec --json":                "exec --json resume ID",
		"hello":                      "resume ID hello",
		"":                           "resume ID",
		"-m gpt-5 exec -C dir hello": "-m gpt-5 exec -C dir resume ID hello",
		"resume --last":              "resume --last",
		"exec hello -m gpt-5":        "exec -m gpt-5 resume ID hello",
		"exec hello -s read-only":    "exec -s read-only resume ID hello",
		"exec --json -- --hello":     "exec --json resume ID -- --hello",
		"hello -C dir":               "-C dir resume ID hello",
		"exec exec":                  "exec resume ID exec",
		"exec hello -i a.png":        "exec --image=a.png resume ID hello",
		"exec -":                     "exec resume ID -",
	} {
		args := strings.Fields(line)
		verb, prompt, _ := readCodex(args)
		assert.Equal(t, want, strings.Join(codexResuming(args, verb, prompt, "ID"), " "), line)
	}
}

func TestCheckCodex(t *testing.T) {
	for line, want := range map[string]string{
		"exec hello":                    "",
		"-c model=x exec hello":         "",
		"exec -- -c hooks.Stop=[]":      "",
		"--disable hooks exec hello":    "",
		"-c hooks.Stop=[] exec hello":   "hooks.Stop would replace the hook",
		"exec -chooks={} hello":         "hooks would replace the hook",
		"--config=hooks.Stop=[] hello":  "hooks.Stop would replace",
		"--config hooks.state={} hello": "hooks.state would replace",
		"--remote ws://h hello":         "runs elsewhere",
		"review --base main":            "codex review does one thing",
		"-c":                            "",
	} {
		err := checkCodex(Wishes{Command: append([]string{"codex"}, strings.Fields(line)...)})
		if want == "" {
			assert.NoError(t, err, line)
		} else {
			assert.ErrorContains(t, err, want, line)
		}
	}
	limited := func(l price.Plan) error { return checkCodex(Wishes{Command: []string{"codex"}, Limits: l}) }
	for _, entry := range []price.Limits{{Nanos: 1}, {Tokens: 1}} {
		assert.ErrorContains(t, limited(price.Plan{Entry: entry}), "between two requests")
	}
	unwritten := Wishes{Command: []string{"codex", "exec", "--ephemeral", "hello"}}
	assert.NoError(t, checkCodex(unwritten))
	unwritten.Limits.Day.Nanos = 1
	assert.ErrorContains(t, checkCodex(unwritten), "--ephemeral leaves no rollout")
	assert.NoError(t, limited(price.Plan{Entry: price.Limits{Time: 1}, Day: price.Limits{Tokens: 1}}))
}

func TestCodexConfig(t *testing.T) {
	args := strings.Fields("-c a=b -m gpt-5 --config=c=d -cg=h exec --disable hooks -p work hello -- -c e=f")
	assert.Equal(t, strings.Fields("-c a=b --config=c=d -cg=h --disable hooks"), codexConfig(args))
	assert.Empty(t, codexConfig([]string{"-c"}))
}

func TestTOML(t *testing.T) {
	for text, want := range map[string]string{
		`a "b" \`:    `"a \"b\" \\"`,
		"line\nnext": `"line\nnext"`,
		"\x01\x7f<é": "\"\\u0001\\u007f<é\"",
		"":           `""`,
	} {
		assert.Equal(t, want, toml(text))
	}
	_, err := codexCommand(t.Context(), Session{Wishes: Wishes{Command: []string{"/bin/false"}}, Args: []string{"--inbox", "/\xff"}})
	assert.EqualError(t, err, `"/\xff" is not UTF-8, and cannot be a part of Codex's configuration`)
}

// A program that is no Codex gives a sentence, whatever it does.
func TestAskTrustOfAnother(t *testing.T) {
	for program, want := range map[string]string{
		"/bin/cat": "no answer", "/bin/false": "no answer", "/nowhere/codex": "no such file",
	} {
		s := Session{Wishes: Wishes{Command: []string{program}}, Dir: t.TempDir(), Hook: "/bin/heartbeat-stop", Args: []string{"--inbox", "/w/inbox.jsonl"}}
		_, err := codexCommand(t.Context(), s)
		assert.ErrorContains(t, err, want, program)
		assert.ErrorContains(t, err, "ask "+program+" for its hooks", program)
	}
}
