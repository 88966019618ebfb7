package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/upstream"
)

// An agent whose outcomes cannot be read from their start goes on with the new ones.
func TestOutcomesThatCannotBeReadAnew(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	a := &Agent{box: box}
	a.ledger, err = upstream.OpenLedger(box.Path(), upstream.Binding{Agent: "one", Stream: "WORK", Subject: ">"})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.ledger.Close()) }()
	require.NoError(t, a.openTails(0))
	require.NoError(t, os.Mkdir(box.DeadLetterPath(), 0o700))
	require.ErrorContains(t, a.readAll(), "read what became of the entries")
	require.NoError(t, os.Remove(box.DeadLetterPath()))
	require.NoError(t, a.readOutcomes())
	require.NoError(t, a.readAll())
}
