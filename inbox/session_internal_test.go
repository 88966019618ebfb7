package inbox

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing is committed that was decided without the sessions.
func TestSessionsOfAnotherReleaseStopTheCommit(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*Tx){
		"read":    func(tx *Tx) { tx.In("s").Known() },
		"changed": func(tx *Tx) { tx.In("s").CountBlock(true) },
	} {
		box, err := Open(filepath.Join(t.TempDir(), "inbox.jsonl"), Options{})
		require.NoError(t, err)
		tx, err := box.Begin(context.Background())
		require.NoError(t, err)
		tx.st.Sessions = []byte(`"a new form"`)
		look(tx)
		assert.ErrorIs(t, tx.Commit(), ErrCorrupt, name)
		require.NoError(t, tx.Close())
	}
}
