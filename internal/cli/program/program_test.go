package program_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
)

// awkward are lines that roff would change without escaping.
var awkward = []string{
	`.TH is no request here`, `'br is none either`, `a back\slash, \fBand\fR \n[.x] \" two`, `...`,
	`it's "quoted" and ` + "`so`", `--flag -f a-b --`, `~/x^y`, `naïve → 50 % (100 €)`, `\`, `.`, `'`, `\.`,
}

func declared(name, example string, flags ...string) cli.Verb {
	return cli.Verb{
		Name: name, Args: "[ARG...]", Short: strings.Join(awkward, " "),
		Long: strings.Join(awkward, "\n\n") + "\n\n  laid out\n    by hand\n.so", Example: example,
		Build: func(f *pflag.FlagSet) cli.Action {
			for _, flag := range flags {
				if value, takes := strings.CutSuffix(flag, "="); takes {
					f.String(value, `.\x"`, ".SH, with a `.value` and a \\")
				} else {
					f.Bool(flag, false, "a switch")
				}
			}
			return func(args []string, s cli.Streams) error {
				var given []string
				f.VisitAll(func(flag *pflag.Flag) {
					if flag.Changed {
						given = append(given, flag.Name+"="+flag.Value.String())
					}
				})
				return s.Print(strings.Join(append(append([]string{name}, given...), args...), " "))
			}
		},
	}
}

// run runs a program with these verbs.
func run(args ...string) (said, complained string, status int) {
	letters := cli.Verb{Name: "letters", Short: "letters", Example: "x", Verbs: []cli.Verb{declared("list", "x", "since="), declared("purge", "x", "all")}}
	var out, err bytes.Buffer
	status = program.Program{Name: "prog", Short: "a program", Long: "Long.", Example: "prog send", Groups: []program.Group{
		{Title: "First", Verbs: []cli.Verb{declared("send", strings.Join(awkward, "\n"), "json", "inbox="), letters}},
	}}.Run(args, cli.Streams{Command: "prog", Out: &out, Err: &err})
	return out.String(), err.String(), status
}

func TestWhatIsNoVerb(t *testing.T) {
	for line, want := range map[string]string{
		"sned":               `prog: unknown verb "sned": did you mean send? (see prog --help)`,
		"sned --help":        `prog: unknown verb "sned": did you mean send? (see prog --help)`,
		"help sned":          `prog: unknown verb "sned": did you mean send? (see prog help --help)`,
		"send --jsno":        `prog: unknown flag: --jsno (see prog send --help)`,
		"--what send":        `prog: unknown flag: --what (see prog --help)`,
		"--json":             `prog: unknown flag: --json (see prog --help)`,
		"letters":            `prog: say what to do: list, purge (see prog letters --help)`,
		"letters list --all": `prog: unknown flag: --all (see prog letters list --help)`,
	} {
		said, complained, status := run(strings.Fields(line)...)
		assert.Equal(t, 1, status, line)
		assert.Empty(t, said, line)
		assert.Equal(t, want+"\n", complained, line)
	}
}

// A reader of a manual page sees the original text, and can copy it.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	_, complained, status := run("man", "--dir", dir)
	require.Equal(t, 0, status, complained)
	pages, err := os.ReadDir(dir)
	require.NoError(t, err)
	for renderer, of := range map[string]struct{ lint, show []string }{
		"mandoc": {[]string{"-Tlint", "-Wwarning"}, []string{"-Tutf8", "-Owidth=200"}},
		"groff":  {[]string{"-man", "-ww", "-z"}, []string{"-man", "-Tutf8", "-P-c", "-rLL=200n"}},
	} {
		if _, err := exec.LookPath(renderer); err != nil {
			t.Logf("no %[1]s here: apt-get install -y %[1]s", renderer)
			continue
		}
		for _, page := range pages {
			out, _ := exec.Command(renderer, append(of.lint, filepath.Join(dir, page.Name()))...).CombinedOutput() // mandoc fails on a warning
			for line := range strings.Lines(string(out)) {
				assert.Contains(t, line, `missing date, using "": TH`, page.Name()) // on purpose
			}
		}
		shown, err := exec.Command(renderer, append(of.show, filepath.Join(dir, "prog-send.1"))...).Output()
		require.NoError(t, err)
		words := strings.Join(strings.Fields(string(shown)), " ")
		for _, line := range append(awkward, "laid out by hand .so", ".SH, with a .value and a \\") {
			assert.Contains(t, words, strings.Join(strings.Fields(line), " "), renderer)
		}
	}
}

func TestHelpFitsTheScreen(t *testing.T) {
	said, _, status := run("help")
	assert.Equal(t, 0, status)
	assert.Contains(t, said, "\nFirst:\n  send ")
	said, _, _ = run("letters", "purge", "--help")
	assert.Contains(t, said, "Usage:\n  prog letters purge [flags] [ARG...]\n")
	assert.Contains(t, said, "--all ")
	assert.NotContains(t, said, "--since")
}
