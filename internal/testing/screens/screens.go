// Package screens has what clients printed to a terminal, for the tests of what recognises it.
package screens

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Recording is one file of testdata/screens, CLIENT/KIND[-WORD]-ROWSxCOLS.ans.
type Recording struct {
	Name       string // of the file, without its end
	Kind       string // what it is to be recognised as, "" for nothing
	Rows, Cols int
	Printed    []byte
}

// Recordings are those of all clients, or of the clients that are named.
func Recordings(t testing.TB, clients ...string) (all []Recording) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "..", "..", "..", "testdata", "screens")
	if len(clients) == 0 {
		clients = []string{"*"}
	}
	for _, client := range clients {
		paths, err := filepath.Glob(filepath.Join(dir, client, "*.ans"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			all = append(all, read(t, path))
		}
	}
	return all
}

func read(t testing.TB, path string) Recording {
	t.Helper()
	r := Recording{Name: strings.TrimSuffix(filepath.Base(path), ".ans")}
	if kind, _, _ := strings.Cut(r.Name, "-"); kind != "unknown" {
		r.Kind = kind
	}
	_, err := fmt.Sscanf(r.Name[strings.LastIndex(r.Name, "-")+1:], "%dx%d", &r.Rows, &r.Cols)
	require.NoError(t, err, "%s: it takes KIND[-WORD]-ROWSxCOLS.ans", path)
	r.Printed, err = os.ReadFile(path)
	require.NoError(t, err)
	return r
}
