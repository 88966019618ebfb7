package settings

import (
	"strings"

	"heartbeat/internal/words"
)

// shellWords splits a shell line into words, well enough to recognise a program and its flags. It removes quotes and
// backslashes, ends words at operators, leaves variables as they are, and leaves out a comment at the end.
func shellWords(line string) (all []string) {
	var word strings.Builder
	open, quote := false, byte(0) // a word has begun, perhaps an empty quoted one; the open quote, or 0
	flush := func() {
		if open {
			all = append(all, word.String())
		}
		word.Reset()
		open = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			open = true
			word.WriteByte(line[i])
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == '#' && !open && !strings.Contains(line[i:], "\n"):
			return all
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			flush()
		default:
			open = true
			word.WriteByte(c)
		}
	}
	flush()
	return all
}

// CommandLine returns a shell line that [splitLine] can split. exec replaces the shell, because a shell that cannot start
// a process ends with status 2, which the client takes for an order.
func CommandLine(command string, args []string) string {
	return words.Shell(append([]string{"exec", command}, args...)...)
}

// splitLine splits a shell line that is one command of words, quoted as [words.Shell] does. Of any other line, which a
// person wrote, it returns the line itself, and nil.
func splitLine(line string) (command string, args []string) {
	all := shellWords(line)
	if len(all) == 0 || words.Shell(all...) != line {
		return line, nil
	}
	if len(all) > 1 && all[0] == "exec" {
		all = all[1:]
	}
	return all[0], append([]string{}, all[1:]...)
}
