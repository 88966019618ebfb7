// Package pages checks the help and the manual pages of commands.
package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
)

// CheckPages checks that each page is valid, shows every text as it was written, and
// has every flag. Some of that needs a renderer, such as mandoc, and is skipped
// without one.
func CheckPages(t *testing.T, pages ...cli.Page) {
	t.Run("flags", func(t *testing.T) { haveEveryFlag(t, pages) })
	eachRenderer(t, func(t *testing.T, name string) {
		for _, p := range pages {
			assert.Empty(t, render(t, name, renderers[name].lint, p), p.Command)
			isVerbatim(t, render(t, name, renderers[name].show, p), p)
		}
	})
}

func haveEveryFlag(t *testing.T, pages []cli.Page) {
	for _, p := range pages {
		p.Flags.VisitAll(func(f *pflag.Flag) {
			tag := `\fB` + strings.ReplaceAll("--"+f.Name, "-", `\-`) + `\fR`
			assert.Regexp(t, `(?m)^\.TP\n.*`+regexp.QuoteMeta(tag), p.Manual(), p.Command)
		})
	}
}

// isVerbatim checks that a reader sees, and can copy, what was written.
func isVerbatim(t *testing.T, shown string, p cli.Page) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for line := range strings.Lines(p.Example) {
		assert.Contains(t, shown, "\n"+strings.TrimSpace(line)+"\n", p.Command)
	}
	for _, paragraph := range strings.Split(p.Long, "\n\n") {
		assert.Contains(t, words(shown), words(paragraph), p.Command)
	}
	p.Flags.VisitAll(func(f *pflag.Flag) {
		_, text := pflag.UnquoteUsage(f)
		assert.Contains(t, words(shown), words(text), p.Command)
	})
}

// renderers print a page as a reader sees it, and report errors in it.
var renderers = map[string]struct{ show, lint []string }{
	"mandoc": {[]string{"-Tutf8", "-Owidth=200"}, []string{"-Tlint", "-Wwarning"}},
	"groff":  {[]string{"-man", "-Tutf8", "-P-c", "-rLL=200n"}, []string{"-man", "-ww", "-z"}},
}

// eachRenderer skips renderers that are not installed, and says how to install them.
func eachRenderer(t *testing.T, test func(t *testing.T, name string)) {
	for name := range renderers {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("no %s here: apt-get install -y %s", name, name)
			}
			test(t, name)
		})
	}
}

// render runs a renderer on the page and returns its lines without the margin.
func render(t *testing.T, name string, args []string, p cli.Page) string {
	path := filepath.Join(t.TempDir(), p.ManualName()+".1")
	require.NoError(t, os.WriteFile(path, []byte(p.Manual()), 0o600))
	out, _ := exec.Command(name, append(args, path)...).CombinedOutput() // a warning is a failure to mandoc
	var lines []string
	for line := range strings.Lines(string(out)) {
		// There is no date on purpose. This mandoc warns about that.
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, `WARNING: missing date, using "": TH`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
