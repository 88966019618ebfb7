package command

import (
	"fmt"
	"strings"

	"heartbeat/internal/cli"
)

func fishCompletion(all []completed) string {
	var b, takes, verbs strings.Builder
	for _, c := range all {
		c.fish(&b)
		var flags []string
		for _, f := range c.known() {
			if takesValue(f) {
				flags = append(flags, "--"+f.Name)
			}
		}
		fmt.Fprintf(&takes, "\t\tcase %s\n\t\t\tprintf '%%s\\n' -- %s\n", quote(c.key), strings.Join(flags, " "))
		if len(c.verbs) > 0 {
			fmt.Fprintf(&verbs, "\t\tcase %s\n\t\t\tprintf '%%s\\n' %s\n", quote(c.key), strings.Join(c.verbNames(), " "))
		}
	}
	script := strings.Replace(fishScript, "\t\tTAKES\n", takes.String(), 1)
	return strings.Replace(script, "\t\tVERBS\n", verbs.String(), 1) + b.String()
}

// fish writes the lines about c.
func (c completed) fish(b *strings.Builder) {
	command, _, _ := strings.Cut(c.key, " ")
	commands := "-c " + command
	if command != commandName { // `heartbeat launch` is completed as well
		commands += " -c " + commandName
	}
	line := func(condition, what string) {
		fmt.Fprintf(b, "complete %s -n %s %s\n", commands, quote(condition+" "+c.key), what)
	}
	for _, v := range c.verbs {
		line("__heartbeat_first", "-f -a "+v.Name+" -d "+quote(v.What))
	}
	for _, f := range c.offered() {
		what := "-l " + f.Name + " -d " + quote(flagUsage(f))
		switch {
		case !takesValue(f):
		case cli.Choices(f) != nil:
			what += " -x -a " + quote(strings.Join(cli.Choices(f), " "))
		case !takesFile(f):
			what += " -x"
		default:
			what += " -r -F"
		}
		line("__heartbeat_at", what)
	}
	if len(c.words) > 0 {
		line("__heartbeat_first", "-f -a "+quote(strings.Join(c.words, " ")))
	}
	if c.ids != "" {
		line("__heartbeat_at", "-f -k -a "+quote("(__heartbeat_ids "+c.ids+")"))
	}
	if c.command {
		line("__heartbeat_first", "-f -a '(__fish_complete_command)'")
	}
}

const fishScript = `# fish completion for heartbeat and the commands heartbeat-host, heartbeat-launch, heartbeat-mcp, heartbeat-nats, heartbeat-stop and heartbeat-watch

function __heartbeat_takes -d 'the flags that take a value at a key'
	switch "$argv"
		TAKES
	end
end

function __heartbeat_verbs -d 'the verbs at a key'
	switch "$argv"
		VERBS
	end
end

# Prints the key, a command with its verb, and how many arguments are behind it.
function __heartbeat_walk
	set -l line (commandline -opc)
	set -l key (string replace -r '.*/' '' -- $line[1])
	set -l takes (__heartbeat_takes $key)
	set -l verbs (__heartbeat_verbs $key)
	set -l operands 0
	set -l skip no
	for word in $line[2..-1]
		if test $skip = yes
			set skip no
		else if string match -q -- '-*' $word
			contains -- $word $takes; and set skip yes
		else if contains -- $word $verbs
			set key "$key $word"
			switch $key
				case 'heartbeat host' 'heartbeat launch' 'heartbeat mcp' 'heartbeat nats' 'heartbeat stop' 'heartbeat watch'
					set key heartbeat-$word
			end
			set takes (__heartbeat_takes $key)
			set verbs (__heartbeat_verbs $key)
		else
			set operands (math $operands + 1)
			set verbs
		end
	end
	echo $key
	echo $operands
end

function __heartbeat_at -d 'the line is at this key'
	set -l at (__heartbeat_walk)
	test "$at[1]" = "$argv"
end

function __heartbeat_first -d 'the line is at this key, and no argument is there'
	set -l at (__heartbeat_walk)
	test "$at[1]" = "$argv" -a "$at[2]" = 0
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
