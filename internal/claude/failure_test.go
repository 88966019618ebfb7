package claude_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/claude"
)

var (
	pausing  = claude.Remedy{Person: true}
	login    = claude.Remedy{Person: true, Login: true}
	counting = claude.Remedy{Counts: true, First: 5 * time.Second, Most: 30 * time.Minute}
	waiting  = claude.Remedy{First: 5 * time.Second, Most: 30 * time.Minute}
	slowed   = claude.Remedy{First: time.Minute, Most: 30 * time.Minute}
)

func TestRemedyOfEveryName(t *testing.T) {
	want := map[string]claude.Remedy{
		"authentication_failed": login, "oauth_org_not_allowed": login, "account_on_hold": login,
		"verification_required": login, "billing_error": login, "model_not_found": pausing, "cloud_credential_error": login,
		"rate_limit": slowed, "overloaded": slowed,
		"invalid_request": counting, "server_error": counting, "unknown": counting, "max_output_tokens": counting,
	}
	names := claude.FailureNames()
	assert.Len(t, names, 13)
	got := map[string]claude.Remedy{}
	for _, name := range names {
		got[name] = claude.RemedyFor(name, "")
		assert.Equal(t, got[name], claude.RemedyOf(name))
	}
	assert.Equal(t, want, got)
	for _, name := range []string{"", "a_name_of_2030", "Rate_Limit", "rate_limit "} {
		assert.Equal(t, counting, claude.RemedyFor(name, "API Error: something"), "%q", name)
		assert.Zero(t, claude.RemedyOf(name+": credit balance is too low"), "%q", name)
	}
}

func TestFailureNamesAreTheCallersOwn(t *testing.T) {
	names := claude.FailureNames()
	names[0] = "x"
	assert.NotEqual(t, names, claude.FailureNames())
}

// The message decides only where the name is vague.
func TestRemedyHeedsTheNameFirst(t *testing.T) {
	for _, message := range []string{"API Error: 529 Overloaded", "Connection error.", "You've hit your limit"} {
		assert.Equal(t, counting, claude.RemedyFor("invalid_request", message), message)
		assert.Equal(t, login, claude.RemedyFor("authentication_failed", message), message)
		assert.Equal(t, slowed, claude.RemedyFor("rate_limit", message), message)
	}
}

// Every later entry may meet what the client calls an invalid request.
func TestRemedyOfAnInvalidRequest(t *testing.T) {
	for message, want := range map[string]claude.Remedy{
		"Your ANTHROPIC_API_KEY belongs to a disabled organization · Update or unset the environment variable": pausing,
		"Prompt is too long · the request is ~250000 tokens (limit 200000)":                                    pausing,
		"Request too large (max 32MB). Accumulated images and attachments in the conversation pushed it over":  pausing,
		"API Error: 400 tools.0.input_schema: Field required":                                                  counting,
	} {
		assert.Equal(t, want, claude.RemedyFor("invalid_request", message), message)
	}
}

func TestRemedyOfAServerError(t *testing.T) {
	for message, want := range map[string]claude.Remedy{
		// In the client's words.
		"API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check https://status.claude.com.":        waiting,
		"API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment.":                                      waiting,
		"API Error: Connection dropped (ECONNRESET). A VPN, firewall, or security software can cause this. Check those or switch networks, then try again.":          waiting,
		"API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)":                                                                      waiting,
		"API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)":                                                                             waiting,
		"API Error: No internet route — check your connection or VPN (ENETUNREACH)":                                                                                  waiting,
		"API Error: Couldn't connect through your proxy (ERR_PROXY_TUNNEL) — the proxy refused the tunnel: check its credentials and that it allows this host":       waiting,
		"API Error: Unable to connect to API. Check your internet connection":                                                                                        waiting,
		"API Error: Unable to connect to API: SSL certificate has expired":                                                                                           waiting,
		"API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.":                                                             waiting,
		"API Error: Connection lost mid-response. The response above may be incomplete.":                                                                             waiting,
		"API Error: Connection closed before the response finished":                                                                                                  waiting,
		"API Error: The response stalled before a response was produced. Try again.":                                                                                 waiting,
		"API Error: The response stopped arriving. The response above may be incomplete.":                                                                            waiting,
		"API Error: Your computer went to sleep before a response was produced. Try again.":                                                                          waiting,
		"API Error: No response from API (waited 5m, then 10m on the retry)":                                                                                         waiting,
		"API Error: The API is temporarily unavailable":                                                                                                              waiting,
		"Request timed out. Check your internet connection and proxy settings":                                                                                       waiting,
		"Failed to refresh OAuth token: another Claude Code process is refreshing it or exited mid-refresh. This is usually transient; retry in a minute":            waiting,
		"API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway": counting,
		"API Error: Server error mid-response. The response above may be incomplete.":                                                                                counting,
		"API Error: The response stream was malformed and no response was produced. Try again.":                                                                      counting,
		// The neighbours.
		"api error: 529":                         waiting,
		"OVERLOADED":                             waiting,
		"HTTP 529":                               waiting,
		"API Error: 504 Gateway Timeout":         waiting,
		"API Error: 503 Service unavailable":     waiting,
		"API Error: 502":                         waiting,
		"API Error: 505":                         counting,
		"API Error: 5290 bytes":                  counting,
		"API Error: 500 request req_529 failed":  counting,
		"API Error: 500 after a rate limit of 1": counting,
		"API Error: 529":                         waiting,
		"API Error: 52":                          counting,
		"":                                       counting,
	} {
		assert.Equal(t, want, claude.RemedyFor("server_error", message), message)
	}
}

func TestRemedyOfAnUnknownFailure(t *testing.T) {
	for message, want := range map[string]claude.Remedy{
		"API Error: 400 messages: at least one message is required":                 counting,
		"API Error: 400 the tool fetch failed to validate":                          counting,
		"API Error: 413 request too large: the upload timed out":                    counting,
		"API Error: Usage credits ran out before the response was finished.":        pausing,
		"API Error: 402 payment required":                                           pausing,
		"API Error":                                                                 counting,
		"input length and max_tokens exceed context limit: 190000 + 20000 > 200000": counting,
		"API Error: Request rejected (429) · slow down":                             slowed,
		"API Error: 429 Too Many Requests":                                          slowed,
		"upstream answered with HTTP 429":                                           slowed,
		"request failed with status code 429":                                       slowed,
		"API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.": slowed,
		"This request would exceed your organization's rate limit of 30,000 input tokens per minute":                          slowed,
		"Claude AI usage limit reached|1795287600":                                                                            slowed,
		"You've hit your limit · resets 3pm (America/Los_Angeles)":                                                            slowed,
		"You've hit your weekly limit · resets Nov 23, 5pm (Europe/Berlin)":                                                   slowed,
		"rate_limit_error":                              slowed,
		"API Error: Overloaded":                         waiting,
		"API Error: 529 Overloaded":                     waiting,
		"API Error: Connection error.":                  waiting,
		"API Error: fetch failed":                       waiting,
		"API Error: connect ECONNREFUSED 192.0.2.1:443": waiting,
		"API Error: socket hang up":                     waiting,
		"API Error: 408 Request timed out":              waiting,
	} {
		for _, name := range []string{"unknown", "", "a_name_of_2030"} {
			assert.Equal(t, want, claude.RemedyFor(name, message), "%q: %s", name, message)
		}
	}
}

func TestBackoffDoubles(t *testing.T) {
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800} {
		assert.Equal(t, want*time.Second, counting.Backoff(i+1, 0), "%d in a row", i+1)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		assert.Equal(t, want*time.Minute, slowed.Backoff(i+1, 0), "%d in a row", i+1)
	}
	assert.Equal(t, 5*time.Second, counting.Backoff(0, 0), "no failure is taken for one")
	assert.Equal(t, 5*time.Second, counting.Backoff(math.MinInt, 0))
	assert.Zero(t, pausing.Backoff(3, 0.5), "a person has no schedule")
}

func TestBackoffJitter(t *testing.T) {
	assert.Equal(t, 5500*time.Millisecond, counting.Backoff(1, 0.5))
	for _, streak := range []int{1, 2, 9, 10, 1_000_000, math.MaxInt} {
		base := counting.Backoff(streak, 0)
		last := base
		for _, random := range []float64{0.1, 0.5, 0.999999} {
			got := counting.Backoff(streak, random)
			assert.Greater(t, got, last)
			assert.Less(t, got, base+base/5)
			last = got
		}
	}
	for _, odd := range []float64{math.NaN(), math.Inf(-1), -1} {
		assert.Equal(t, 5*time.Second, counting.Backoff(1, odd))
	}
	assert.Equal(t, 6*time.Second, counting.Backoff(1, math.Inf(1)))
}

func TestBackoffDoesNotOverflow(t *testing.T) {
	endless := claude.Remedy{First: 1, Most: math.MaxInt64}
	assert.Equal(t, time.Duration(math.MaxInt64), endless.Backoff(1_000_000, 0))
	assert.Equal(t, time.Duration(math.MaxInt64), endless.Backoff(1_000_000, 0.99))
	assert.Equal(t, time.Second, claude.Remedy{First: time.Hour, Most: time.Second}.Backoff(3, 0), "the longest wins")
	assert.Zero(t, claude.Remedy{Most: time.Hour}.Backoff(math.MaxInt, 0.5))
}
