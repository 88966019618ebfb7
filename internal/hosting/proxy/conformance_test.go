package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"heartbeat/internal/hosting/config"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// conformant has the tools that the suite of the protocol's authors calls.
func conformant(t *testing.T) *Proxy {
	t.Helper()
	p, _ := start(t, Options{
		Tools: []config.Tool{
			{Name: "test_simple_text", Description: "answers with a text"},
			{Name: "test_error_handling", Description: "fails"},
			{Name: "json_schema_2020_12_tool", Description: "has a schema of the 2020-12 draft", Params: json.RawMessage(
				`{"$schema":"https://json-schema.org/draft/2020-12/schema",` +
					`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
					`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string"},"phone":{"type":"string"},"email":{"type":"string"}},` +
					`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
					`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
					`"additionalProperties":false}`)},
			{Name: "test_custom_header", Description: "has an argument that is a header too", Params: json.RawMessage(
				`{"properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)},
		},
		Call: func(_ context.Context, tool config.Tool, _ json.RawMessage) (string, error) {
			if tool.Name == "test_error_handling" {
				return "", errors.New("This tool intentionally returns an error for testing")
			}
			return "This is a simple text response for testing.", nil
		},
	})
	return p
}

// forward adds the token, which the suite cannot send. A Host or Origin of its own is
// the proxy's; any other is passed on as it is.
func forward(t *testing.T, p *Proxy) *httptest.Server {
	t.Helper()
	target, err := url.Parse(p.address(""))
	require.NoError(t, err)
	var server *httptest.Server
	server = httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		port := server.URL[strings.LastIndexByte(server.URL, ':'):]
		r.SetURL(target)
		if !strings.HasSuffix(r.In.Host, port) {
			r.Out.Host = r.In.Host
		}
		if origin := r.In.Header.Get("Origin"); strings.HasSuffix(origin, port) {
			r.Out.Header.Set("Origin", target.String())
		}
		r.Out.Header.Set("Authorization", "Bearer "+p.token)
	}})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// inapplicable are the suite's scenarios, and single checks of others, that ask for what
// the proxy does not have, with the reason.
var inapplicable = map[string]string{
	"completion-complete":                             "it has tools only, and says so",
	"logging-set-level":                               "it has tools only, and says so",
	"prompts-":                                        "it has tools only, and says so",
	"resources-":                                      "it has tools only, and says so",
	"sep-2549-prompts-list-caching-hints":             "it has tools only, and says so",
	"sep-2549-resources-list-caching-hints":           "it has tools only, and says so",
	"sep-2549-resources-templates-list-caching-hints": "it has tools only, and says so",
	"tools-call-audio":                                "a guild answers with text",
	"tools-call-embedded-resource":                    "a guild answers with text",
	"tools-call-image":                                "a guild answers with text",
	"tools-call-mixed-content":                        "a guild answers with text",
	"tools-call-with-logging":                         "a guild's call has one answer and no progress",
	"tools-call-with-progress":                        "a guild's call has one answer and no progress",
	"elicitation-":                                    "a guild asks the client nothing",
	"tools-call-elicitation":                          "a guild asks the client nothing",
	"tools-call-sampling":                             "a guild asks the client nothing",
	"input-required-result-":                          "a guild asks the client nothing",
	"sep-2575-server-rejects-undeclared-capability":   "a guild asks the client nothing",
	"sep-2575-missing-capability-http-400":            "a guild asks the client nothing",
	"server-sse-polling":                              "an answer is not kept for a client that lost its connection",
}

// applicable reports whether a check asks for what the proxy has.
func applicable(scenario, check string) bool {
	if check == "wire-schema-valid" {
		return true
	}
	for name := range inapplicable {
		if check == name || scenario == name || strings.HasSuffix(name, "-") && strings.HasPrefix(scenario, name) {
			return false
		}
	}
	return true
}

func TestConformance(t *testing.T) {
	command := os.Getenv("HEARTBEAT_CONFORMANCE")
	if command == "" {
		t.Skip("this test runs the suite of the protocol's authors; set HEARTBEAT_CONFORMANCE to the command of @modelcontextprotocol/conformance")
	}
	for version, atLeast := range map[string]int{"2025-11-25": 27, "2026-07-28": 76} {
		t.Run(version, func(t *testing.T) {
			server, folder := forward(t, conformant(t)), t.TempDir()
			run := exec.CommandContext(t.Context(), command, "server", "--url", server.URL+"/mcp", "--suite", "all",
				"--spec-version", version, "--output-dir", folder)
			out, err := run.CombinedOutput() // it fails for what is inapplicable
			files, _ := filepath.Glob(filepath.Join(folder, "server-*", "checks.json"))
			require.NotEmpty(t, files, "%v: %s", err, out)
			passed := map[string]int{}
			for _, file := range files {
				scenario := filepath.Base(filepath.Dir(file))
				scenario = strings.TrimPrefix(scenario[:len(scenario)-len("-2006-01-02T15-04-05-000Z")], "server-")
				for _, check := range checks(t, file) {
					switch {
					case check.Status == "SUCCESS":
						passed[scenario]++
					case check.Status == "FAILURE" && applicable(scenario, check.ID):
						t.Errorf("%s: %s: %s", scenario, check.ID, check.ErrorMessage)
					}
				}
			}
			total := 0
			for _, scenario := range slices.Sorted(maps.Keys(passed)) {
				if applicable(scenario, "") {
					t.Logf("%s: %d checks passed", scenario, passed[scenario])
					total += passed[scenario]
				}
			}
			assert.GreaterOrEqual(t, total, atLeast, "the suite ran")
		})
	}
}

// check is one of the suite's results.
type check struct{ ID, Status, ErrorMessage string }

func checks(t *testing.T, file string) []check {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var list []check
	require.NoError(t, json.Unmarshal(raw, &list))
	return list
}
