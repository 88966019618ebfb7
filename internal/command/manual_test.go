package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/pages"
)

func TestManPages(t *testing.T) {
	all := allPages()
	for _, p := range all {
		require.NotNil(t, p.Flags.Lookup("help"), p.Command)
	}
	pages.CheckPages(t, all...)
}
