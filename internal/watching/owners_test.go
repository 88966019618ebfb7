package watching

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/watching/look"
	"heartbeat/internal/watching/page"
	"heartbeat/internal/why"
)

// Root tells about each inbox in another process, which becomes that inbox's owner.
func TestRootTellsInProcesses(t *testing.T) {
	dir := t.TempDir()
	stub := "#!/bin/sh\n" + `[ "$3" != /b/inbox.jsonl ] || { echo "heartbeat: no such user" >&2; exit 1; }` + "\n" + `echo "$*"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "heartbeat"), []byte(stub), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var p look.Picture
	for _, path := range []string{"/a/inbox.jsonl", "/b/inbox.jsonl", "/c/inbox.jsonl"} {
		p.Inboxes = append(p.Inboxes, look.Inbox{Facts: why.Facts{Inbox: path}})
	}
	var said bytes.Buffer
	err := tellAsOwners(t.Context(), &page.Flags{Notify: "mail me"}, p, cli.Streams{Err: &said})
	require.EqualError(t, err, "tell about /b/inbox.jsonl: no such user")
	assert.Contains(t, said.String(), "about /a/inbox.jsonl: notify --inbox /a/inbox.jsonl --notify mail me")
	assert.Contains(t, said.String(), "about /c/inbox.jsonl: ")
}
