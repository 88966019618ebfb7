package walls

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	design = "../../../docs/design.md"
	// together begins the table's last row, which has the most that all may have.
	together = "| together |"
)

var (
	update = flag.Bool("update", false, "write the lines that there are into docs/design.md as each room's budget")
	// room is a row of the table of packages, and what it says of its lines.
	room   = regexp.MustCompile("^(\\| (?:`[a-z/-]+/`(?:, )?)+ \\| .*? )\\|(?: ([0-9,]+) \\|)?\n$")
	folder = regexp.MustCompile("`([a-z/-]+)/`")
)

// TestBudget holds each room to the lines that docs/design.md gives it: those of the files
// that are shipped, for Linux, without tests. A room is a row of the table of packages, with
// the folders below its own that are in no other row.
//
// A room that is over its budget needs fewer mechanisms. To raise a budget is a commit of its
// own that says why; -update writes what there is now, for all rooms.
func TestBudget(t *testing.T) {
	raw, err := os.ReadFile(design)
	require.NoError(t, err)
	before, table, found := strings.Cut(string(raw), "\n## Packages\n")
	require.True(t, found)
	table, after, found := strings.Cut(table, "\n## ")
	require.True(t, found)
	shipped, err := shippedLines()
	require.NoError(t, err)

	table, over := budget(table, shipped, *update)
	assert.Empty(t, strings.Join(over, "\n"), "take mechanisms out; or raise the budget in docs/design.md, in a commit of its own that says why")
	if *update {
		require.NoError(t, os.WriteFile(design, []byte(before+"\n## Packages\n"+table+"\n## "+after), 0o644))
	}
}

// budget compares each row's budget with the lines of its packages, and the sum of the
// budgets with what all may have; or it sets the budgets, but for that sum.
func budget(table string, shipped map[string]int, set bool) (now string, over []string) {
	lines := map[string]int{} // by row
	for pkg, n := range shipped {
		row := rowOf(pkg, table)
		if row == "" {
			over = append(over, fmt.Sprintf("%s is in no row", pkg))
		}
		lines[row] += n
	}
	sum := 0
	for row := range strings.Lines(table) {
		if rest, is := strings.CutPrefix(row, together); is {
			if most := number(strings.Trim(rest, " |\n")); sum > most {
				over = append(over, fmt.Sprintf("the budgets are %s lines together, of at most %s", spelt(sum), spelt(most)))
			}
		}
		m := room.FindStringSubmatch(row)
		if m == nil {
			now += row
			continue
		}
		budget := number(m[2])
		if set {
			budget = lines[row]
			row = m[1] + "| " + spelt(budget) + " |\n"
		} else if lines[row] > budget {
			over = append(over, fmt.Sprintf("%s has %s lines, of at most %s", strings.Trim(strings.Split(m[1], " | ")[0], "| "), spelt(lines[row]), spelt(budget)))
		}
		sum += budget
		now += row
	}
	return now, over
}

// rowOf is the row with the longest folder that a package is in.
func rowOf(pkg, table string) (found string) {
	longest := ""
	for row := range strings.Lines(table) {
		m := room.FindStringSubmatch(row)
		if m == nil {
			continue
		}
		for _, f := range folder.FindAllStringSubmatch(strings.Split(row, " | ")[0], -1) {
			if (pkg == f[1] || strings.HasPrefix(pkg, f[1]+"/")) && len(f[1]) > len(longest) {
				found, longest = row, f[1]
			}
		}
	}
	return found
}

// shippedLines are the lines of each package that our commands link.
func shippedLines() (map[string]int, error) {
	files, err := shippedFiles()
	all := map[string]int{}
	for _, f := range files {
		all[f.pkg] += f.lines
	}
	return all, err
}

// shippedFile is a file of a package that our commands link.
type shippedFile struct {
	pkg, path string
	lines     int
}

func shippedFiles() (all []shippedFile, err error) {
	list := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{range .GoFiles}}{{$.Dir}}/{{.}}{{"|"}}{{end}}{{end}}`, module+"cmd/...")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list what the commands link: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, files, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg, ours := strings.CutPrefix(pkg, module)
		if !ours {
			continue
		}
		for path := range strings.SplitSeq(strings.TrimSuffix(files, "|"), "|") {
			raw, err := os.ReadFile(filepath.FromSlash(path))
			if err != nil {
				return nil, err
			}
			all = append(all, shippedFile{pkg, path, bytes.Count(raw, []byte("\n"))})
		}
	}
	return all, nil
}

func number(text string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(text, ",", "")) // the pattern has only digits; none is 0
	return n
}

func spelt(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", spelt(n/1000), n%1000)
}

func TestARoomOverItsBudgetIsFound(t *testing.T) {
	const table = "| folder | what | lines |\n|---|---|---|\n| `queue/`, `cmd/a/` | it | 30 |\n| `queue/part/` | a part | 1,005 |\n| `tests/` | rigs | 0 |\n| together | | 1,040 |\n"
	tests := map[string]struct {
		lines map[string]int
		table string
		want  []string
	}{
		"within":        {map[string]int{"queue": 20, "queue/other": 5, "cmd/a": 5, "queue/part/deep": 1005}, table, nil},
		"over":          {map[string]int{"queue": 26, "cmd/a": 5}, table, []string{"`queue/`, `cmd/a/` has 31 lines, of at most 30"}},
		"tests shipped": {map[string]int{"tests/agent": 1}, table, []string{"`tests/` has 1 lines, of at most 0"}},
		"in no row":     {map[string]int{"queues": 1}, table, []string{"queues is in no row"}},
		"no budget":     {map[string]int{"a": 1}, "| `a/` | it |\n", []string{"`a/` has 1 lines, of at most 0"}},
		"the sum":       {nil, strings.Replace(table, " 30 ", " 36 ", 1), []string{"the budgets are 1,041 lines together, of at most 1,040"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now, over := budget(tc.table, tc.lines, false)
			assert.Equal(t, tc.want, over)
			assert.Equal(t, tc.table, now)
		})
	}
	now, _ := budget(table, map[string]int{"queue": 1005, "tests/agent": 7}, true)
	assert.Equal(t, "| folder | what | lines |\n|---|---|---|\n| `queue/`, `cmd/a/` | it | 1,005 |\n| `queue/part/` | a part | 0 |\n| `tests/` | rigs | 7 |\n| together | | 1,040 |\n", now)
	now, _ = budget("| `a/` | it |\n", map[string]int{"a": 1}, true)
	assert.Equal(t, "| `a/` | it | 1 |\n", now, "a row that had none")
}
