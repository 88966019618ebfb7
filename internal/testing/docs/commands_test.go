package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	comment  = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	flagName = regexp.MustCompile(`^--[a-z][a-z-]*`)
	verb     = regexp.MustCompile(`^[a-z][a-z-]*$`)
	// calling is one of our commands, with or without its folder.
	calling = regexp.MustCompile(`(?:^|[\s(]|/bin/)(heartbeat(?:-stop|-launch|-host|-watch|-mcp|-nats)?) `)
)

// call is a command of ours as a document writes it: `heartbeat run start --inbox I`.
type call struct {
	command string
	verbs   []string // none for the hook and for the launcher
	flags   []string
}

// calls finds those in a text for a shell.
func calls(text string) (all []call) {
	text = comment.ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "")
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n|;&", r) }) {
		line = strings.ReplaceAll(line, "-u heartbeat ", "") // the user of that name
		m := calling.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		c := call{command: line[m[2]:m[3]]}
		words := strings.Fields(line[m[1]:])
		for len(words) > 0 && verb.MatchString(words[0]) && c.command != "heartbeat-launch" {
			c.verbs, words = append(c.verbs, words[0]), words[1:]
		}
		for _, word := range words {
			if word == "--" {
				break
			}
			if f := flagName.FindString(word); f != "" {
				c.flags = append(c.flags, f)
			}
		}
		all = append(all, c)
	}
	return all
}

// helps is what each command says of itself.
type helps map[string]string

// of is the help of a command, or of its verb with the verbs beneath that; "" where there
// is no such verb.
func (h helps) of(t *testing.T, words ...string) string {
	t.Helper()
	key := strings.Join(words, " ")
	if help, known := h[key]; known {
		return help
	}
	help := "--help"
	if strings.HasSuffix(key, "launch") { // it has so many flags that this shows a part of them
		help = "--help-all"
	}
	out, err := exec.Command(filepath.Join(bin, words[0]), append(words[1:], help)...).Output()
	if err != nil {
		out = nil
	}
	h[key] = string(out)
	return h[key]
}

// Each verb and each flag that a document names is one that there is.
func TestCommandsExist(t *testing.T) {
	h, found := helps{}, 0
	for _, path := range documents(t) {
		if path == "CHANGELOG.md" { // it names what was
			continue
		}
		blocks, prose := split(t, path)
		var texts []string
		for _, b := range blocks {
			if b.Language == "sh" || b.Language == "cron" {
				texts = append(texts, b.Text)
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
			texts = append(texts, m[1])
		}
		for _, c := range calls(strings.Join(texts, "\n")) {
			found++
			assertExists(t, h, path, c)
		}
	}
	require.Greater(t, found, 50)
}

func assertExists(t *testing.T, h helps, path string, c call) {
	t.Helper()
	if len(c.verbs) == 0 && c.command == "heartbeat" {
		return // as in "heartbeat VERB --help"
	}
	help := h.of(t, c.command)
	if len(c.verbs) > 0 {
		help = h.of(t, c.command, c.verbs[0])
		if !assert.NotEmpty(t, help, "%s: there is no %s %s", path, c.command, c.verbs[0]) {
			return
		}
	}
	if len(c.verbs) > 1 {
		help += h.of(t, c.command, c.verbs[0], c.verbs[1])
	}
	for _, f := range c.flags {
		assert.Regexp(t, regexp.QuoteMeta(f)+`\b`, help, "%s: %s %s has no %s", path, c.command, strings.Join(c.verbs, " "), f)
	}
}

var (
	flagRow  = regexp.MustCompile("(?m)^\\| (`--(?:[^|]|\\\\\\|)*)\\|")
	flagCell = regexp.MustCompile("`(--[a-z-]+)")
	flagHelp = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)
)

// The tables of flags name each one that the command has, and none that is gone.
func TestFlagTables(t *testing.T) {
	for _, c := range []struct {
		path     string
		headings []string
		command  string
	}{
		{"docs/launch.md", []string{"### Flags", "## A terminal and nothing else"}, "heartbeat-launch"},
		{"docs/host.md", []string{"## Commands"}, "heartbeat-host start"},
	} {
		t.Run(c.command, func(t *testing.T) {
			var listed []string
			for _, heading := range c.headings {
				for _, row := range flagRow.FindAllStringSubmatch(section(t, c.path, heading), -1) {
					for _, m := range flagCell.FindAllStringSubmatch(row[1], -1) {
						listed = append(listed, m[1])
					}
				}
			}
			var there []string
			for _, m := range flagHelp.FindAllStringSubmatch(helps{}.of(t, strings.Fields(c.command)...), -1) {
				there = append(there, m[1])
			}
			require.NotEmpty(t, listed)
			require.NotEmpty(t, there)
			assert.Subset(t, there, listed, "%s names a flag that %s has not", c.path, c.command)
			assert.Subset(t, append(listed, "--help", "--help-all", "--version"), there, "%s lacks a flag of %s", c.path, c.command)
		})
	}
}

// section is what stands below a heading, down to the next one.
func section(t *testing.T, path, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(read(t, path), "\n"+heading+"\n")
	require.True(t, found, "%s has no %s", path, heading)
	section, _, _ := strings.Cut(below, "\n#")
	return section
}
