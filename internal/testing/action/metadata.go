package action

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Metadata is an action.yml.
type Metadata struct {
	Name, Description string
	Inputs            map[string]Input
	Outputs           map[string]struct{ Description, Value string }
	Runs              struct {
		Using string
		Steps []Step
	}
}

// Input is what an action can be given.
type Input struct {
	Description string
	Default     string
	Required    bool
}

// Step is one of a composite action, or of a job.
type Step struct {
	ID, Name, If, Shell, Run, Uses string
	Env, With                      map[string]string
}

// Read returns the metadata of the action in a folder.
func Read(folder string) (m Metadata, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, "action.yml"))
	if err != nil {
		return m, fmt.Errorf("action: %w", err)
	}
	if err := yaml.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("action: %w", err)
	}
	return m, nil
}

// values are what expressions name: "inputs.id", "steps.ask.outputs.reply".
type values map[string]string

var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// fill replaces the expressions in a text.
func (v values) fill(text string) (string, error) {
	var unknown error
	filled := expression.ReplaceAllStringFunc(text, func(found string) string {
		name := expression.FindStringSubmatch(found)[1]
		value, err := v.of(name)
		if err != nil {
			unknown = err
		}
		return value
	})
	return filled, unknown
}

var context = regexp.MustCompile(`^(inputs|github|secrets|runner)\.[\w-]+$|^steps\.[\w-]+\.outputs\.[\w-]+$`)

// of is a value by its name. What no step has set is empty, as for a runner.
func (v values) of(name string) (string, error) {
	if !context.MatchString(name) {
		return "", fmt.Errorf("action: this runner knows no expression such as %q", name)
	}
	if value, known := v[name]; known {
		return value, nil
	}
	if strings.HasPrefix(name, "steps.") {
		return "", nil
	}
	return "", fmt.Errorf("action: nothing is named %s", name)
}

var term = regexp.MustCompile(`^(\S+) (==|!=) '([^']*)'$`)

// holds is whether a step's condition does. Without always() no step runs after one that failed.
func (v values) holds(condition string, failed bool) (bool, error) {
	if condition == "" {
		return !failed, nil
	}
	all := !failed
	rest := condition
	if after, found := strings.CutPrefix(condition, "always() && "); found {
		all, rest = true, after
	}
	for one := range strings.SplitSeq(rest, " && ") {
		m := term.FindStringSubmatch(one)
		if m == nil {
			return false, fmt.Errorf("action: this runner knows no condition such as %q", one)
		}
		value, err := v.of(m[1])
		if err != nil {
			return false, err
		}
		all = all && (value == m[3]) == (m[2] == "==")
	}
	return all, nil
}
