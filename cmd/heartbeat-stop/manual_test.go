package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/clitest"
)

func TestManPages(t *testing.T) {
	pages := allPages()
	for _, p := range pages {
		require.NotNil(t, p.Flags.Lookup("help"), p.Command)
	}
	clitest.CheckPages(t, pages...)
}
