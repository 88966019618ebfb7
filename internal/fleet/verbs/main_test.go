package verbs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
)

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"snd":                            `unknown verb "snd": did you mean send?`,
		"--frob":                         "unknown flag: --frob",
		"serve":                          "name its directory with --dir",
		"serve --dir a b":                `unexpected argument "b"`,
		"status --jsno":                  "unknown flag: --jsno",
		"send":                           "no subject: name it with --subject, such as work.review",
		"send --subject a --id= x":       "--id is empty: name the message, or leave the flag out",
		"send --subject a --timeout 3 x": "--timeout is about waiting: add --wait",
		"send --subject a x y":           "2 texts: quote the text, or send it on stdin",
		"send --subject a --meta id=7 x": `--meta "id=7": the name "id" is taken`,
		"send --subject a..b x":          `--subject is "a..b": a message has one subject, of words with dots between them, without wildcards and blanks`,
		"results a --follow":             "-n and --follow are for the list: leave ID out, or wait for a message with heartbeat-nats send --id ID --wait",
		"results -n -1":                  "-n is below 0: give how many, or 0 for all",
		"dead list a":                    `unexpected argument "a"`,
		"dead requeue a --all":           "both an ID and --all: one of them is enough",
		"dead":                           "say what to do: list, show, requeue, purge",
		"agent --inbox a --no-session --name a\xff": `--name is "a\xff", which is not UTF-8: choose another`,
		"drain":                 "name an agent: heartbeat-nats status shows them",
		"drain a --undo --wait": "--undo and --wait: an agent that takes messages again is not waited for",
		"metrics --output=":     "--output is empty: name a file, or leave the flag out",
		"status --stream a.b":   `the stream's name is "a.b": it takes letters, digits, - and _, since its buckets are named after it`,
		"results --raw":         "--raw is about one reply in full: name the ID",
		"dead purge x --json":   "what is purged is gone for good, and nobody is there to be asked: add --yes",
	} {
		status, out, said := run(t, strings.Fields(args)...)
		assert.Equal(t, cli.ExitError, status, args)
		assert.Empty(t, out, args)
		assert.Regexp(t, "^heartbeat-nats: ((dead purge|send): )?"+regexp.QuoteMeta(want)+` \(see heartbeat-nats (--help|\S+ --help|dead \S+ --help)\)\n$`, said)
	}
}

func TestHelp(t *testing.T) {
	_, overview, _ := run(t)
	_, help, _ := run(t, "help")
	assert.Equal(t, overview, help)
	_, long, _ := run(t, "dead", "requeue", "--help")
	_, asked, _ := run(t, "help", "dead", "requeue")
	assert.Equal(t, long, asked)
	assert.Contains(t, long, "Exit status: 0 done")
	_, man, _ := run(t, "man", "dead", "requeue")
	assert.Contains(t, man, `.SH NAME`+"\n"+`heartbeat\-nats\-dead\-requeue \- send the messages of dead letters again`)
}
