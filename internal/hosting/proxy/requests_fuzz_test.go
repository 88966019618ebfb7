package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a client posts, it is answered, and never with a 5xx; the proxy serves on.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"", "{", "[]", "null", "7", `""`, initialize, listTools, callEcho, callEchoAlone, "[" + listTools + "]",
		`{"jsonrpc":"2.0","id":null,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"1.0","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/get"}`, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen"}`, `{"jsonrpc":"2.0","id":3,"method":"server/discover"}`,
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(1))
		f.Add([]byte(seed), uint8(2))
	}
	f.Fuzz(func(t *testing.T, body []byte, where uint8) {
		p, _ := start(t, Options{})
		headers := map[string]string{}
		switch where % 3 {
		case 1:
			headers = map[string]string{versionHeader: "2025-06-18", "Mcp-Session-Id": initialized(t, p)}
		case 2:
			headers = map[string]string{versionHeader: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
		}
		r := request(t, p, "POST", "/mcp", string(body))
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		// A subscription is answered for as long as it lasts: the body is not read.
		_ = response.Body.Close()
		require.Less(t, response.StatusCode, 500, "%s", body)
		status, said := send(t, p, "POST", "/mcp", initialize, nil)
		require.Equal(t, http.StatusOK, status)
		require.True(t, bytes.Contains([]byte(said), []byte(ServerName)))
		p.Close()
	})
}

// The arguments reach the tool as they are or not at all.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{"", "null", "{}", " {} ", "[]", `"x"`, "{", `{"a":1e999,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := arguments(raw)
		if err != nil || !json.Valid(raw) {
			return
		}
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(args, &object))
	})
}
