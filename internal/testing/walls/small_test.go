package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallest is how many lines a package has at least, so that a folder is a thing that one
// would look for.
const smallest = 150

// apart says of each smaller package what keeps it from being a part of another one.
var apart = map[string]string{
	"internal/agent":           "it knows the clients, and what it would be a part of is what they import",
	"internal/agent/handed":    "the clients import it, and the table of the clients imports them",
	"internal/claim":           "launcher, host and fleet need it, and the hook links nothing of it",
	"internal/gate":            "the host's proxy and the server of the tools need it, and neither links the other",
	"internal/machine/signals": "the hook catches no signal, and links all of internal/machine",
	"internal/platform":        "each command imports it for its refusal alone",
}

// TestSmallPackages refuses a package that is too small to be one, unless a wall needs it.
func TestSmallPackages(t *testing.T) {
	shipped, err := shippedLines()
	require.NoError(t, err)
	for pkg, lines := range shipped {
		if strings.HasPrefix(pkg, "cmd/") { // main, and nothing else
			continue
		}
		if lines < smallest {
			assert.NotEmpty(t, apart[pkg], "%s has %d lines: make it a part of another package, or say what keeps it apart", pkg, lines)
		} else {
			assert.Empty(t, apart[pkg], "%s has %d lines: it needs no excuse", pkg, lines)
		}
	}
}

// TestLongFiles refuses a shipped file that tells more than one story.
func TestLongFiles(t *testing.T) {
	const longest = 400
	all, err := shippedFiles()
	require.NoError(t, err)
	for _, f := range all {
		assert.LessOrEqual(t, f.lines, longest, "%s: give what it says of another noun a file of its own", f.path)
	}
}

// TestNamesOfPackages refuses two shipped packages of one name: a reader meets both as that
// name alone.
func TestNamesOfPackages(t *testing.T) {
	shipped, err := shippedLines()
	require.NoError(t, err)
	named := map[string]string{}
	for pkg := range shipped {
		name := path.Base(pkg)
		assert.Empty(t, named[name], "%s has the same name", pkg)
		named[name] = pkg
	}
}

// TestStructures refuses a shipped structure of too many fields: what changes together is a structure of its own.
func TestStructures(t *testing.T) {
	const most = 20
	all, err := shippedFiles()
	require.NoError(t, err)
	for _, f := range all {
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, _ := n.(*ast.TypeSpec)
			if spec == nil {
				return true
			}
			if s, is := spec.Type.(*ast.StructType); is {
				assert.LessOrEqual(t, fields(s), most, "%s: %s", f.path, spec.Name.Name)
			}
			return true
		})
	}
}

// fields counts each name, and each embedded structure once.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// TestTransactionMethods holds what a reader of the queue must know of a transaction to what fits a page. What concerns
// a session, spending, or a hold on delivery is a group of its own.
func TestTransactionMethods(t *testing.T) {
	const most = 45
	doc := exec.CommandContext(t.Context(), "go", "doc", "heartbeat/inbox", "Tx")
	out, err := doc.Output()
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(out), "\nfunc (t *Tx) "), most)
}

// TestNothingForTests refuses a switch for tests in the queue's own package, which programs of other modules use.
func TestNothingForTests(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "doc", "-short", "heartbeat/inbox").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "func Open(")
	assert.NotContains(t, string(out), "TestOnly")
}
