package effect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-shellwords"
)

const (
	// MeasuredVersion is the version of the CLI whose behaviour heartbeat knows.
	MeasuredVersion = "0.0.187"
	// DefaultCommand calls babysitter if the user names no command.
	DefaultCommand = "babysitter"
	// Npx is the command that runs the CLI without installing it.
	Npx = "npx -y -p @a5c-ai/babysitter-sdk@" + MeasuredVersion + " babysitter"
	// Install is the command that installs the CLI.
	Install = "npm install -g @a5c-ai/babysitter-sdk@" + MeasuredVersion
)

// ParseCommand splits a command line for the CLI into words, as a shell does. A path with blanks is quoted, or is
// the whole line and names an existing file. A program with a slash is a path, and is returned as an absolute one.
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
		return nil, fmt.Errorf("the command of babysitter %q cannot be read: %w", line, err)
	case parser.Position >= 0:
		return nil, fmt.Errorf("the command of babysitter %q is shell script: name a program and its arguments, or a script file", line)
	case len(words) == 0:
		return nil, errors.New("the command of babysitter is empty")
	}
	return words, nil
}
