package page

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"heartbeat/internal/cli"
)

// ServerName is what clients call the server: its tools are mcp__heartbeat__task_done and so
// on.
const ServerName = "heartbeat"

// Arguments are what the command is started with to have these flags, with absolute paths.
func Arguments(o *Flags) ([]string, error) {
	if o.Inbox == "" {
		return nil, cli.ErrNoInbox
	}
	path, err := filepath.Abs(o.Inbox)
	if err != nil {
		return nil, err
	}
	args := []string{"--inbox", path, "--role", o.Role}
	if o.Role == Agent {
		args = append(args, "--rate", fmt.Sprint(o.Rate))
	}
	to, err := Named(o.To)
	if err != nil {
		return nil, err
	}
	for _, one := range to {
		if path, err = filepath.Abs(one.Path); err != nil {
			return nil, err
		}
		args = append(args, "--to", one.Name+"="+path)
	}
	return args, nil
}

// Config is what has a client start the command with these flags, as a JSON text.
func Config(command string, o *Flags) ([]byte, error) {
	args, err := Arguments(o)
	if err != nil {
		return nil, err
	}
	// Without alwaysLoad the client hides the tools behind a search.
	server := map[string]any{"type": "stdio", "command": command, "args": args, "alwaysLoad": true}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{ServerName: server}}, "", "  ")
	return append(text, '\n'), err
}
