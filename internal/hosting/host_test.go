package hosting

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A guild that never closes the pipe holds nobody up.
func TestAConfigThatDoesNotEnd(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { assert.NoError(t, w.Close()) }()
	_, err = w.WriteString("{")
	require.NoError(t, err)
	_, err = readConfig("-", r, time.Millisecond)
	assert.EqualError(t, err, "the config on stdin did not end in time: write one JSON object and close it")
}
