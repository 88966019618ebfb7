package babysitter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-shellwords"
)

// ParseCommand splits how the CLI is called into words, as a shell does: a path
// with blanks is quoted, or is the whole command and names a file that is there. A
// program with a slash is a path, and comes out absolute. Errors match [ErrInvalid].
func ParseCommand(line string) (words []string, err error) {
	if info, err := os.Stat(line); err == nil && info.Mode().IsRegular() && isPath(line) {
		words = []string{line}
	} else if words, err = split(line); err != nil {
		return nil, err
	}
	if isPath(words[0]) {
		if words[0], err = filepath.Abs(words[0]); err != nil {
			return nil, fmt.Errorf("find the babysitter CLI: %w", err)
		}
	}
	return words, nil
}

func isPath(program string) bool { return strings.ContainsRune(program, filepath.Separator) }

func split(line string) ([]string, error) {
	parser := shellwords.NewParser()
	words, err := parser.Parse(line)
	switch {
	case err != nil:
		return nil, invalid("the command of babysitter %q cannot be read: %v", line, err)
	case parser.Position >= 0:
		return nil, invalid("the command of babysitter %q is shell script: name a program and its arguments, or a script file", line)
	case len(words) == 0:
		return nil, invalid("the command of babysitter is empty")
	}
	return words, nil
}

// known says what was seen of other versions than [Measured].
func known(version string) string {
	switch version {
	case "0.0.174":
		return "with it tasks were delivered three times, and then the run failed"
	}
	return "nothing is known of it"
}

// Identity tells one installed CLI from another: the command, and the size and time of
// its program.
func (c *CLI) Identity() (string, error) {
	path, err := c.executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("look at the babysitter CLI: %w", err)
	}
	return fmt.Sprintf("%q %s %d %d", c.command(), path, info.Size(), info.ModTime().UnixNano()), nil
}
