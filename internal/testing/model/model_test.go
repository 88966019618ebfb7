package model

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start runs a model for one test.
func start(t *testing.T, script Script) *Model {
	t.Helper()
	m, err := Start(script)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// ask is the body of a main request with one user message.
func ask(text string, stream bool) string {
	raw, _ := json.Marshal(map[string]any{
		"model": "m", "stream": stream, "tools": []any{map[string]any{"name": "Bash"}},
		"messages": []any{map[string]any{"role": "user", "content": text}},
	})
	return string(raw)
}

// post sends one body and returns the status and the whole answer.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(raw)
}

func TestEchoAnswersInJSON(t *testing.T) {
	m := start(t, nil)
	status, raw := post(t, m.URL()+"/v1/messages?beta=true", ask("é \"quoted\"\nline", false))
	assert.Equal(t, http.StatusOK, status)
	var got message
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	assert.Equal(t, "assistant", got.Role)
	assert.Equal(t, "msg_standin_0001", got.ID)
	require.Len(t, got.Content, 1)
	assert.Equal(t, "answer to: é \"quoted\"\nline", got.Content[0]["text"])
	require.NotNil(t, got.StopReason)
	assert.Equal(t, "end_turn", *got.StopReason)
}

// events reads a whole SSE answer as its data objects, in order.
func events(t *testing.T, raw string) []map[string]any {
	t.Helper()
	var list []map[string]any
	lines := bufio.NewScanner(strings.NewReader(raw))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event map[string]any
		require.NoError(t, json.Unmarshal([]byte(data), &event))
		list = append(list, event)
	}
	return list
}

// kinds is the type of every event.
func kinds(list []map[string]any) []string {
	var out []string
	for _, event := range list {
		out = append(out, event["type"].(string))
	}
	return out
}

func TestStreamHasTheEventsOfTheAPI(t *testing.T) {
	m := start(t, nil)
	_, raw := post(t, m.URL()+"/v1/messages", ask("hi", true))
	list := events(t, raw)
	assert.Equal(t, []string{"message_start", "content_block_start", "content_block_delta",
		"content_block_stop", "message_delta", "message_stop"}, kinds(list))
	assert.Equal(t, "answer to: hi", list[2]["delta"].(map[string]any)["text"])
	assert.Nil(t, list[0]["message"].(map[string]any)["stop_reason"])
	assert.Equal(t, "end_turn", list[4]["delta"].(map[string]any)["stop_reason"])
}

func TestStreamOfTextAndTool(t *testing.T) {
	m := start(t, func(Request) Reply {
		reply := Tool("Bash", map[string]any{"command": "true"})
		reply.Text = "first"
		return reply
	})
	_, raw := post(t, m.URL()+"/v1/messages", ask("hi", true))
	list := events(t, raw)
	require.Len(t, list, 9)
	assert.EqualValues(t, 0, list[1]["index"])
	assert.EqualValues(t, 1, list[4]["index"])
	tool := list[4]["content_block"].(map[string]any)
	assert.Equal(t, "Bash", tool["name"])
	assert.Equal(t, "toolu_msg_standin_0001_0", tool["id"])
	assert.JSONEq(t, `{"command":"true"}`, list[5]["delta"].(map[string]any)["partial_json"].(string))
	assert.Equal(t, "tool_use", list[7]["delta"].(map[string]any)["stop_reason"])
}

func TestToolInJSON(t *testing.T) {
	m := start(t, func(Request) Reply { return Tool("Read", nil) })
	_, raw := post(t, m.URL()+"/v1/messages", ask("hi", false))
	assert.Contains(t, raw, `"content":[{"id":"toolu_msg_standin_0001_0","input":{},"name":"Read","type":"tool_use"}]`)
	assert.Contains(t, raw, `"stop_reason":"tool_use"`)
}

func TestToolRefusesInputThatIsNotJSON(t *testing.T) {
	assert.Panics(t, func() { Tool("Bash", map[string]any{"command": make(chan int)}) })
}

func TestErrorReply(t *testing.T) {
	m := start(t, func(Request) Reply { return Overloaded() })
	status, raw := post(t, m.URL()+"/v1/messages", ask("hi", true))
	assert.Equal(t, 529, status)
	assert.JSONEq(t, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, raw)
}

func TestBodyThatIsNotJSON(t *testing.T) {
	m := start(t, nil)
	status, raw := post(t, m.URL()+"/v1/messages", "{")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, raw, "invalid_request_error")
	assert.Empty(t, m.Requests())
}

func TestProbesAndOtherPaths(t *testing.T) {
	m := start(t, nil)
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		req, err := http.NewRequest(method, m.URL()+"/whatever", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode, method)
	}
	_, raw := post(t, m.URL()+"/v1/messages/count_tokens", "{}")
	assert.JSONEq(t, `{"input_tokens":1}`, raw)
	status, raw := post(t, m.URL()+"/v1/unknown", "{}")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, raw, "/v1/unknown")
	assert.Empty(t, m.Requests())
}

func TestDelayHoldsTheAnswerBack(t *testing.T) {
	const delay = 50 * time.Millisecond
	m := start(t, func(Request) Reply { return Text("late").After(delay) })
	begin := time.Now()
	_, raw := post(t, m.URL()+"/v1/messages", ask("hi", false))
	assert.GreaterOrEqual(t, time.Since(begin), delay)
	assert.Contains(t, raw, "late")
}

func TestHangEndsWithTheClient(t *testing.T) {
	m := start(t, func(Request) Reply { return Hang() })
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL()+"/v1/messages", strings.NewReader(ask("hi", false)))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	_, err = m.WaitRequests(t.Context(), 1)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestCloseReleasesHangingRepliesAndWaiters(t *testing.T) {
	m := start(t, func(Request) Reply { return Hang() })
	ended := make(chan error, 1)
	go func() {
		resp, err := http.Post(m.URL()+"/v1/messages", "application/json", strings.NewReader(ask("hi", false)))
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	_, err := m.WaitRequests(t.Context(), 1)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := m.WaitRequests(context.Background(), 2)
		waited <- err
	}()
	m.Close()
	m.Close()
	require.Error(t, <-ended)
	require.ErrorIs(t, <-waited, ErrClosed)
}

func TestUnendedSaysItsTextAndNoEnd(t *testing.T) {
	m := start(t, func(Request) Reply { return Text("said").Unended() })
	resp, err := http.Post(m.URL()+"/v1/messages", "application/json", strings.NewReader(ask("hi", true)))
	require.NoError(t, err)
	defer resp.Body.Close()
	var said strings.Builder
	part := make([]byte, 512)
	for !strings.Contains(said.String(), "content_block_stop") {
		n, err := resp.Body.Read(part)
		require.NoError(t, err)
		said.Write(part[:n])
	}
	assert.Contains(t, said.String(), `"said"`)
	m.Close()
	rest, err := io.ReadAll(resp.Body)
	require.Error(t, err, "the answer is broken off")
	assert.NotContains(t, string(rest), "message_stop")
}

func TestUsing(t *testing.T) {
	m := start(t, func(Request) Reply {
		return Text("hi").Using(Usage{Input: 3, Output: 5, CacheRead: 7, CacheWrite: 11})
	})
	for _, stream := range []bool{false, true} {
		resp, err := http.Post(m.URL()+"/v1/messages", "application/json", strings.NewReader(ask("hello", stream)))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Contains(t, string(body), `"usage":{"cache_creation_input_tokens":11,"cache_read_input_tokens":7,"input_tokens":3,"output_tokens":5}`)
	}
}
