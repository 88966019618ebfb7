package settings

import "strings"

// shellWords splits a line for a shell into words, well enough to find a program and its flags: it removes quotes and
// backslashes, ends words at operators, and leaves variables as they are. A comment at the end stands apart. plain reports
// whether the line is one command of words that are plain, or quoted as [quoted] does it: any other one is a person's.
func shellWords(line string) (words []string, comment string, plain bool) {
	var word strings.Builder
	open, quote := false, byte(0) // a word has begun, perhaps an empty quoted one; the quote that is open, or 0
	flush := func() {
		if open {
			words = append(words, word.String())
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
			return words, line[i:], plain
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
	return words, "", plain && quote == 0
}

// isPlain reports whether a character stands for itself in a shell's word.
func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}

// quoted is a word for a shell, in quotes.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// spelled are words for a shell, in quotes where they need them.
func spelled(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		if all[i] = word; word == "" || strings.ContainsFunc(word, func(r rune) bool { return r > '~' || !isPlain(byte(r)) }) {
			all[i] = quoted(word)
		}
	}
	return strings.Join(all, " ")
}

// CommandLine is the line for a shell that [SplitLine] takes apart again. The shell becomes the program: one that cannot
// start a process ends with status 2, which is an order to the client.
func CommandLine(command string, args []string) string {
	return spelled(append([]string{"exec", command}, args...))
}

// SplitLine takes apart a line for a shell that is a command in words that are plain, or quoted as we quote them.
func SplitLine(line string) (command string, args []string, simple bool) {
	words, comment, plain := shellWords(line)
	if plain && len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	if !plain || comment != "" || len(words) == 0 {
		return line, nil, false
	}
	return words[0], append([]string{}, words[1:]...), true
}
