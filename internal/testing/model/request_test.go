package model

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUserTextOfBodies(t *testing.T) {
	cases := map[string]struct {
		messages string
		text     string
		results  []string
	}{
		"a plain string": {
			`[{"role":"user","content":"hi"}]`, "hi", nil},
		"the last user message, not the last message": {
			`[{"role":"user","content":"one"},{"role":"assistant","content":"a"},{"role":"user","content":"two"},{"role":"system","content":"s"}]`,
			"two", nil},
		"reminders in front are left out": {
			`[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nx\n</system-reminder>\n"},{"type":"text","text":"hi"}]}]`,
			"hi", nil},
		"a reminder alone is the text": {
			`[{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"}]}]`,
			"<system-reminder>x</system-reminder>", nil},
		"text that only begins with a reminder stays whole": {
			`[{"role":"user","content":"<system-reminder>x</system-reminder> and more"}]`,
			"<system-reminder>x</system-reminder> and more", nil},
		"several texts": {
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}]`, "a\nb", nil},
		"tool results": {
			`[{"role":"user","content":[{"type":"tool_result","content":"r1"},{"type":"tool_result","content":[{"type":"text","text":"r2"}]}]}]`,
			"", []string{"r1", "r2"}},
		"no user message":           {`[{"role":"assistant","content":"a"}]`, "", nil},
		"content of no known shape": {`[{"role":"user","content":7}]`, "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := parse([]byte(`{"messages":` + c.messages + `}`))
			require.NoError(t, err)
			assert.Equal(t, c.text, req.UserText)
			assert.Equal(t, c.results, req.ToolResults)
			assert.False(t, req.Main)
		})
	}
}

func TestSideRequestsDoNotReachTheScript(t *testing.T) {
	m := start(t, nil)
	_, raw := post(t, m.URL()+"/v1/messages", `{"model":"small","messages":[{"role":"user","content":"a title, please"}]}`)
	assert.Contains(t, raw, sideAnswer)
	_, raw = post(t, m.URL()+"/v1/messages", ask("hi", false))
	assert.Contains(t, raw, "answer to: hi")

	all, mains := m.Requests(), m.MainRequests()
	require.Len(t, all, 2)
	require.Len(t, mains, 1)
	assert.Equal(t, []int{0, 1}, []int{all[0].Number, all[1].Number})
	assert.Equal(t, "small", all[0].Model)
	assert.Equal(t, "hi", mains[0].UserText)
	assert.False(t, mains[0].Time.IsZero())
	assert.JSONEq(t, ask("hi", false), string(mains[0].Body))
}

func TestARequestWithToolsIsMain(t *testing.T) {
	req, err := parse([]byte(ask("hi", true)))
	require.NoError(t, err)
	assert.True(t, req.Main)
	assert.True(t, req.Stream)
	req, err = parse([]byte(`{"tools":[]}`))
	require.NoError(t, err)
	assert.False(t, req.Main)
}

func TestWaitRequestsSeesPastAndFuture(t *testing.T) {
	m := start(t, nil)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			resp, err := http.Post(m.URL()+"/v1/messages", "application/json", strings.NewReader(ask("hi", false)))
			if assert.NoError(t, err) {
				assert.NoError(t, resp.Body.Close())
			}
		})
	}
	third, err := m.WaitRequests(t.Context(), 3)
	require.NoError(t, err)
	assert.Equal(t, 3, third.Number)
	wg.Wait()
	first, err := m.WaitRequests(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, 1, first.Number)
}

func TestWaitRequestsEndsWithItsContext(t *testing.T) {
	m := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.WaitRequests(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "main request 1")
}
