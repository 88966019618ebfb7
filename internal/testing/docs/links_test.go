package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// goPath is a package that a command of Go names.
	goPath  = regexp.MustCompile(`\./(?:internal|cmd|orchestrate|inbox|recover)[\w/]*`)
	goFile  = regexp.MustCompile("`([\\w/]+/\\w+\\.go)`")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// Every link of a document to a file or a heading of this repository leads somewhere.
func TestLinks(t *testing.T) {
	for _, path := range documents(t) {
		_, prose := split(t, path)
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); !assert.NoError(t, err, "%s links to %s", path, m[1]) {
				continue
			}
			if anchor != "" {
				assert.Contains(t, anchors(t, target), anchor, "%s links to %s", path, m[1])
			}
		}
	}
}

// What a document has somebody test, run or read is there.
func TestPackagesAreThere(t *testing.T) {
	for _, path := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		for _, name := range goPath.FindAllString(string(text), -1) {
			assert.DirExists(t, filepath.Join(root, name), "%s names it", path)
		}
		for _, m := range goFile.FindAllStringSubmatch(string(text), -1) {
			assert.FileExists(t, filepath.Join(root, m[1]), "%s names it", path)
		}
	}
}

// anchors are the names that GitHub gives to a document's headings.
func anchors(t *testing.T, path string) (names []string) {
	t.Helper()
	_, prose := split(t, path)
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		names = append(names, anchor(m[1]))
	}
	return names
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
