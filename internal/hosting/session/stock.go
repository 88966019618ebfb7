package session

import (
	"time"
	"unicode/utf8"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
)

// tallied copies what the client's messages said so far.
func tallied(s *folder.State, t *stream.Tally) {
	if t.SessionID != "" {
		s.ProviderSessionID = t.SessionID
	}
	if t.Cost != nil {
		s.CostUSD = t.Cost
	}
	if u := t.Usage; u != nil {
		s.TokenUsage = &folder.TokenUsage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	s.Output, s.OutputCut = "", false
	if t.Text != nil {
		s.Output, s.OutputCut = cut(*t.Text, folder.MaxOutput)
	}
	if r := t.Result; r != nil {
		s.Result = &folder.Result{Subtype: r.Subtype, IsError: r.IsError, NumTurns: int(r.Turns), At: r.At.UTC()}
		s.ErrorText, _ = cut(r.Text, 1<<10)
	}
	if l := t.RateLimit; l != nil && (s.RateLimit == nil || s.RateLimit.ResetsAt == nil) {
		s.RateLimit = rateLimit(l)
	}
}

func rateLimit(l *stream.RateLimit) *folder.RateLimit {
	r := &folder.RateLimit{Detail: l.Detail, Source: "ndjson-result", At: time.Now().UTC()}
	if !l.ResetsAt.IsZero() {
		at := l.ResetsAt.UTC()
		r.ResetsAt = &at
	}
	return r
}

// cut shortens a text to a number of bytes, between two characters.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// toolsUsed copies what the client did with the guild's tools.
func (h *host) toolsUsed(s *folder.State) {
	if h.proxy == nil {
		return
	}
	stats := h.proxy.Stats()
	s.Tools = &folder.Tools{URL: h.proxy.URL(), Listed: stats.Listed, Calls: int64(stats.Calls), Open: int64(stats.Running)}
	if !stats.Last.IsZero() {
		at := stats.Last.UTC()
		s.Tools.LastAt = &at
	}
}

// takeStock notes everything that is known at the end.
func (h *host) takeStock() {
	past := ""
	if h.store != nil {
		past = h.store.Health().Past
	}
	h.change(func(s *folder.State) {
		h.watchLive(s)
		s.Stderr = h.log.stderr()
		if h.proxy != nil && s.Result != nil {
			addWarning(s, h.proxy.Stats().Warning())
		}
		addWarning(s, past)
	})
}
