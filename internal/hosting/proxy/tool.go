package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/internal/hosting/config"
)

// index makes the lookup by name and the list that the client gets.
func index(tools []config.Tool) (map[string]config.Tool, []*mcp.Tool, error) {
	byName := make(map[string]config.Tool, len(tools))
	list := make([]*mcp.Tool, 0, len(tools))
	for i, tool := range tools {
		if tool.Name == otherTool {
			return nil, nil, fmt.Errorf("the name %q of tools[%d] is taken", tool.Name, i)
		}
		schema, err := inputSchema(tool.Params)
		if err != nil {
			return nil, nil, fmt.Errorf("the params of tool %q: %w", tool.Name, err)
		}
		byName[tool.Name] = tool
		list = append(list, &mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: schema})
	}
	return byName, list, nil
}

// inputSchema is {"type":"object", ...params}. The members stay as they were written,
// so that no number or keyword of a schema is lost on the way.
func inputSchema(params json.RawMessage) (json.RawMessage, error) {
	params = bytes.TrimSpace(params)
	if len(params) == 0 || string(params) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if kind, given := members["type"]; given {
		// Clients refuse the whole list for one schema of another type.
		if string(kind) != `"object"` {
			return nil, fmt.Errorf(`its "type" is %s, and arguments are always an "object"`, kind)
		}
		return params, nil
	}
	rest := bytes.TrimSpace(params[1:])
	schema := []byte(`{"type":"object"`)
	if len(members) > 0 {
		schema = append(schema, ',')
	}
	return append(schema, rest...), nil
}
