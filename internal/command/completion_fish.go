package command

import (
	"fmt"
	"heartbeat/internal/cli"
	"strings"

	"github.com/spf13/pflag"
)

func fishCompletion(list []cli.Verb) string {
	var b strings.Builder
	b.WriteString(fishScript)
	fishFlags(&b, "__heartbeat_no_verb", completedBeforeVerb())
	for _, v := range list {
		fishLine(&b, "__heartbeat_first", "-f -a "+v.Name+" -d "+quote(v.Short))
		is := "__heartbeat_verb " + v.Name
		fishFlags(&b, is, completed(v))
		if len(v.Words) > 0 {
			words := strings.Join(v.Words, " ")
			fishLine(&b, is+"; and not __heartbeat_has "+words, "-f -a "+quote(words))
			is += "; and __heartbeat_has " + words
		}
		if v.IDs != "" {
			fishLine(&b, is, "-f -k -a "+quote("(__heartbeat_ids "+v.IDs+")"))
		}
	}
	return b.String()
}

func fishFlags(b *strings.Builder, condition string, flags []*pflag.Flag) {
	for _, f := range flags {
		what := "-l " + f.Name + " -d " + quote(f.Usage)
		if takesValue(f) {
			what += " -r -F"
		}
		fishLine(b, condition, what)
	}
}

func fishLine(b *strings.Builder, condition, what string) {
	fmt.Fprintf(b, "complete -c heartbeat -n %s %s\n", quote(condition), what)
}

const fishScript = `# fish completion for heartbeat

function __heartbeat_first -d 'the first word is being typed'
	test (count (commandline -opc)) -eq 1
end

function __heartbeat_verb -d 'the line is one of this verb'
	set -l line (commandline -opc)
	test "$line[2]" = $argv[1]
end

function __heartbeat_no_verb -d 'the line is one of the hook'
	set -l line (commandline -opc)
	test (count $line) -eq 1; or string match -q -- '-*' $line[2]
end

function __heartbeat_has -d 'one of these words is there already'
	for word in (commandline -opc)[3..-1]
		contains -- $word $argv; and return 0
	end
	return 1
end

function __heartbeat_ids -d 'ids of a kind, with a tab and what each stands for'
	set -l inbox
	set -l last
	for word in (commandline -op)
		test "$last" = --inbox; and set inbox --inbox=$word
		string match -q -- '--inbox=*' $word; and set inbox $word
		set last $word
	end
	heartbeat __ids $argv[1] $inbox 2>/dev/null
end

`
