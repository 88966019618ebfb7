package main

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
)

// awkward are lines that roff would not print as they stand.
var awkward = []string{
	`.TH is no request here`, `'br is none either`, `a back\slash, \fBand\fR \n[.x] \" two`, `...`,
	`it's "quoted" and ` + "`so`", `--flag -f a-b --`, `~/x^y`, `naïve → 50 % (100 €)`, `\`, `.`, `'`, `\.`,
}

// awkwardPage says them wherever a page says anything.
func awkwardPage() page {
	flags := newFlags("awkward")
	flags.String("dot-file", `.\x"`, ".SH, with a `.value` and a \\")
	return page{
		command: "heartbeat-stop a-b", short: strings.Join(awkward, " "),
		long:  strings.Join(awkward, "\n\n") + "\n\n  laid out\n    by hand\n.so",
		usage: awkward, example: strings.Join(awkward, "\n"), flags: flags, status: strings.Join(awkward, "\n\n"),
		files: []file{{".dot", ".what"}}, verbs: []verb{{name: ".verb", short: "'short"}},
	}
}

// renderers print a page as a reader sees it, and tell what is wrong with one.
var renderers = map[string]struct{ show, lint []string }{
	"mandoc": {[]string{"-Tutf8", "-Owidth=200"}, []string{"-Tlint", "-Wwarning"}},
	"groff":  {[]string{"-man", "-Tutf8", "-P-c", "-rLL=200n"}, []string{"-man", "-ww", "-z"}},
}

// eachRenderer skips what is not installed, and says how to have it.
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

func TestManPagesAreValid(t *testing.T) {
	eachRenderer(t, func(t *testing.T, name string) {
		for _, p := range append(allPages(), awkwardPage()) {
			said := render(t, name, renderers[name].lint, p)
			assert.Empty(t, said, p.command)
		}
	})
}

// TestManTextIsVerbatim holds that a reader sees, and can copy, what was written.
func TestManTextIsVerbatim(t *testing.T) {
	eachRenderer(t, func(t *testing.T, name string) {
		for _, p := range append(allPages(), awkwardPage()) {
			shown := render(t, name, renderers[name].show, p)
			for line := range strings.Lines(p.example) {
				assert.Contains(t, shown, "\n"+strings.TrimSpace(line)+"\n", p.command)
			}
			for _, paragraph := range strings.Split(p.long, "\n\n") {
				assert.Contains(t, strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(paragraph), " "), p.command)
			}
		}
	})
}

func TestManPagesHaveEveryFlag(t *testing.T) {
	for _, p := range allPages() {
		require.NotNil(t, p.flags.Lookup("help"), p.command)
		p.flags.VisitAll(func(f *pflag.Flag) {
			tag := `\fB` + strings.ReplaceAll("--"+f.Name, "-", `\-`) + `\fR`
			assert.Regexp(t, `(?m)^\.TP\n.*`+regexp.QuoteMeta(tag), p.manual(), p.command)
			assert.Contains(t, p.manual(), escape(flagText(f)), p.command)
		})
	}
}

// render runs a renderer over the page. Lines come back without their margin.
func render(t *testing.T, name string, args []string, p page) string {
	path := filepath.Join(t.TempDir(), p.manualName()+".1")
	require.NoError(t, os.WriteFile(path, []byte(p.manual()), 0o600))
	out, _ := exec.Command(name, append(args, path)...).CombinedOutput() // a warning is a failure to mandoc
	var lines []string
	for line := range strings.Lines(string(out)) {
		// There is no date on purpose; this mandoc has no word to leave it out.
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, `WARNING: missing date, using "": TH`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
