package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve answers as Codex's server does, with what answer returns for each method.
func serve(t *testing.T, answer func(method string) string) (io.Writer, io.Reader) {
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	t.Cleanup(func() { _ = in.Close() })
	go func() {
		defer func() { _ = answers.Close() }()
		lines := bufio.NewScanner(requests)
		for lines.Scan() {
			var q struct {
				ID     int
				Method string
			}
			if json.Unmarshal(lines.Bytes(), &q) != nil || q.ID == 0 {
				continue
			}
			body := answer(q.Method)
			if body == "" {
				return
			}
			_, _ = fmt.Fprintf(answers, `{"method":"something/happened","params":{}}`+"\n"+`{"id":"q","method":"may/it"}`+"\n"+`{"id":%d,%s}`+"\n", q.ID, body)
		}
	}()
	return in, out
}

func TestConverse(t *testing.T) {
	hooks := `"result":{"data":[{"cwd":"/w","hooks":[{"key":"k","source":"sessionFlags","command":"c","currentHash":"s","more":1}]}]}`
	for name, c := range map[string]struct{ list, want string }{
		"lists":            {hooks, ""},
		"none":             {`"result":{"data":[]}`, ""},
		"an older one":     {`"error":{"code":-32601,"message":"no such method"}`, "refuses hooks/list (no such method): it takes 0.169 or later"},
		"broken config":    {`"result":{"data":[{"hooks":[],"errors":[{"message":"config.toml:1:19: unknown variant"}]}]}`, "configuration is not valid: config.toml:1:19: unknown variant: correct"},
		"has another form": {`"result":{"data":7}`, "has another form"},
		"it ends":          {"", "no answer to hooks/list"},
	} {
		in, out := serve(t, func(method string) string {
			if method == "initialize" {
				return `"result":{}`
			}
			return c.list
		})
		got, err := converse(in, out, "/w")
		if c.want != "" {
			assert.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		if c.list == hooks {
			assert.Equal(t, []CodexHook{{Key: "k", Source: fromFlags, Command: "c", Sum: "s"}}, got)
		}
	}
}
