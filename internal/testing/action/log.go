package action

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Command is one that a runner reads in what a step prints.
type Command struct{ Name, Text string }

var (
	command = regexp.MustCompile(`^\s*::([\w-]+)[^:]*::(.*)$`)
	older   = regexp.MustCompile(`##\[([\w-]+)[^\]]*\](.*)$`)
)

// commands are those that a runner finds in a log: none between stop-commands and the word
// that was given there.
func commands(log string) (found []Command) {
	until := ""
	for line := range strings.Lines(strings.ReplaceAll(log, "\r", "\n")) {
		line = strings.TrimSuffix(line, "\n")
		if until != "" {
			if strings.TrimSpace(line) == "::"+until+"::" {
				until = ""
			}
			continue
		}
		m := command.FindStringSubmatch(line)
		if m == nil {
			m = older.FindStringSubmatch(line)
		}
		switch {
		case m == nil:
		case m[1] == "stop-commands":
			until = m[2]
		default:
			found = append(found, Command{m[1], strings.NewReplacer("%0A", "\n", "%0D", "\r", "%25", "%").Replace(m[2])})
		}
	}
	return found
}

// outputsIn are the outputs that a step has written into its file.
func outputsIn(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	outputs, rest := map[string]string{}, string(raw)
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if name, end, found := strings.Cut(line, "<<"); found {
			value, behind, ended := strings.Cut("\n"+after, "\n"+end+"\n")
			if !ended {
				return nil, fmt.Errorf("action: the output %s has no end", name)
			}
			outputs[name], rest = strings.TrimPrefix(value, "\n"), behind
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			return nil, fmt.Errorf("action: %q is no output", line)
		}
		outputs[name], rest = value, after
	}
	return outputs, nil
}
