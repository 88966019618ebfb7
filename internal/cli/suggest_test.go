package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
)

func TestNearest(t *testing.T) {
	known := []string{"send", "status", "show", "results", "result", "run", "dead-letter", "completion", "man"}
	for typed, want := range map[string]string{
		"sned": "send", "statsu": "status", "stat": "status", "reslts": "results", "rn": "run", "dead-leter": "dead-letter",
		"complet": "completion", "Send": "send", "deadletter": "dead-letter", "send": "send",
		"throw": "", "serve": "", "x": "", "": "", "ma": "man",
	} {
		assert.Equal(t, want, cli.Nearest(typed, known), typed)
	}
	assert.Empty(t, cli.Nearest("send", nil))
}

func TestUnknownFlags(t *testing.T) {
	flags := cli.NewFlags("send")
	flags.String("inbox", "", "")
	flags.Bool("secret", false, "")
	flags.Lookup("secret").Hidden = true
	for args, want := range map[string]string{
		"--inbxo=x": "unknown flag: --inbxo: did you mean --inbox?",
		"--secre":   "unknown flag: --secre",
		"--wholly":  "unknown flag: --wholly",
		"-x":        "unknown shorthand flag: 'x' in -x",
	} {
		assert.EqualError(t, cli.FlagError(flags.Parse([]string{args}), flags), want)
	}
	assert.NoError(t, cli.FlagError(flags.Parse([]string{"--inbox=x"}), flags))
}

func TestFlagsBeforeTheVerb(t *testing.T) {
	verbs := []cli.Verb{
		{Name: "send", Build: flagsOf("inbox=", "json", "keep")},
		{Name: "tidy", Build: flagsOf("keep=")},
		{Name: "letters", Verbs: []cli.Verb{{Name: "list", Build: flagsOf("open", "since=")}}},
	}
	for name, tt := range map[string]struct{ args, want []string }{
		"none":                 {[]string{"send", "--json", "x"}, []string{"send", "--json", "x"}},
		"a switch":             {[]string{"--json", "send", "x"}, []string{"send", "--json", "x"}},
		"a value":              {[]string{"--inbox", "send", "send", "x"}, []string{"send", "--inbox", "send", "x"}},
		"a value in one":       {[]string{"--inbox=x", "send"}, []string{"send", "--inbox=x"}},
		"of a verb's own verb": {[]string{"--since", "1h", "letters", "list"}, []string{"letters", "--since", "1h", "list"}},
		"unknown":              {[]string{"--what", "send"}, []string{"send", "--what"}},
		"unknown, and no verb": {[]string{"--what", "sned"}, []string{"--what", "sned"}},
		"a mistyped verb":      {[]string{"--json", "sned"}, []string{"sned", "--json"}},
		"a switch in one":      {[]string{"--keep", "send", "x"}, []string{"send", "--keep", "x"}},
		"a value in another":   {[]string{"--keep", "1d", "tidy"}, []string{"tidy", "--keep", "1d"}},
		"no verb":              {[]string{"--json", "--inbox", "x"}, []string{"--json", "--inbox", "x"}},
		"end of flags":         {[]string{"--json", "--", "send"}, []string{"--json", "--", "send"}},
		"empty":                {nil, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, cli.VerbFirst(tt.args, verbs)) })
	}
}

// flagsOf declares flags by name; one that ends with = takes a value.
func flagsOf(names ...string) func() (*pflag.FlagSet, cli.Action) {
	return func() (*pflag.FlagSet, cli.Action) {
		f := cli.NewFlags("")
		for _, name := range names {
			if value, takes := strings.CutSuffix(name, "="); takes {
				f.String(value, "", "")
			} else {
				f.Bool(name, false, "")
			}
		}
		return f, nil
	}
}
