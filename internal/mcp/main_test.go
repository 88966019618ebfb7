package mcp_test

import (
	"testing"

	"heartbeat/internal/command"
	"heartbeat/internal/mcp"
	"heartbeat/internal/testing/script"
)

func TestMain(m *testing.M) {
	mcp.TestVerbs = command.Run
	script.Main(m, map[string]func(){"heartbeat": command.Main, "heartbeat-mcp": command.Main})
}
