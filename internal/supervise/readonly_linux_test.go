package supervise

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/testing/script"
)

// While its file system is read-only, the hook cannot say why it delivers nothing, so the log does, once.
func TestReadOnlyIsLogged(t *testing.T) {
	_, box := newRun(t, Persist)
	change(t, box, deliver)
	_, look := told(t, box)
	assert.Len(t, look(), 1)

	writable := script.ReadOnly(t, filepath.Join(box.Dir(), inbox.LockName))
	assert.Equal(t, []string{"nothing can be delivered or acknowledged: write to " + box.Dir() + ": read-only file system"}, look())
	assert.Empty(t, look())

	writable()
	change(t, box, answerAndDeliver)
	assert.Len(t, look(), 2)
}
