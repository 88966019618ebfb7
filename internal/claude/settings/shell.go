package settings

import (
	"strings"

	"heartbeat/internal/words"
)

// shellWords splits a shell line into words, well enough to find a program and its flags. It removes quotes and
// backslashes, ends words at operators, leaves variables as they are, and leaves out a comment at the end. plain
// reports whether the line is one command of words as [words.Shell] quotes them; otherwise a person wrote it.
func shellWords(line string) (all []string, plain bool) {
	var word strings.Builder
	open, quote := false, byte(0) // a word has begun, perhaps an empty quoted one; the open quote, or 0
	flush := func() {
		if open {
			all = append(all, word.String())
		}
		word.Reset()
		open = false
	}
	plain = true
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			plain = plain && quote == 0 && line[i] == '\''
			open = true
			word.WriteByte(line[i])
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			plain = plain && c == '\''
			quote, open = c, true
		case c == '#' && !open && !strings.Contains(line[i:], "\n"):
			return all, false
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			plain = plain && (c == ' ' || c == '\t')
			flush()
		default:
			plain = plain && isPlain(c)
			open = true
			word.WriteByte(c)
		}
	}
	flush()
	return all, plain && quote == 0
}

// isPlain reports whether a character stands for itself in a shell word.
func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}

// CommandLine returns a shell line that [splitLine] can split. exec replaces the shell: a shell that cannot start a
// process would end with status 2, which the client takes for an order.
func CommandLine(command string, args []string) string {
	return words.Shell(append([]string{"exec", command}, args...)...)
}

// splitLine splits a shell line that is one command of words as [words.Shell] quotes them. For another line it returns
// the line itself, and nil.
func splitLine(line string) (command string, args []string) {
	all, plain := shellWords(line)
	if plain && len(all) > 1 && all[0] == "exec" {
		all = all[1:]
	}
	if !plain || len(all) == 0 {
		return line, nil
	}
	return all[0], append([]string{}, all[1:]...)
}
