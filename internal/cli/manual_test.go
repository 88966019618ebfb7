package cli_test

import (
	"strings"
	"testing"

	"heartbeat/internal/cli"
	"heartbeat/internal/testing/pages"
)

// awkward are lines that roff does not print as they are.
var awkward = []string{
	`.TH is no request here`, `'br is none either`, `a back\slash, \fBand\fR \n[.x] \" two`, `...`,
	`it's "quoted" and ` + "`so`", `--flag -f a-b --`, `~/x^y`, `naïve → 50 % (100 €)`, `\`, `.`, `'`, `\.`,
}

// awkwardPage has them in every part of a page.
func awkwardPage() cli.Page {
	flags := cli.NewFlags("awkward")
	flags.String("dot-file", `.\x"`, ".SH, with a `.value` and a \\")
	return cli.Page{
		Command: "heartbeat-stop a-b", Short: strings.Join(awkward, " "),
		Long:  strings.Join(awkward, "\n\n") + "\n\n  laid out\n    by hand\n.so",
		Usage: awkward, Example: strings.Join(awkward, "\n"), Flags: flags, Status: strings.Join(awkward, "\n\n"),
		Files: []cli.Item{{Name: ".dot", What: ".what"}}, Verbs: []cli.Group{{Title: ".first", Items: []cli.Item{{Name: ".verb", What: "'short"}}}, {Title: "'second"}},
	}
}

func TestAnAwkwardPage(t *testing.T) { pages.CheckPages(t, awkwardPage()) }
