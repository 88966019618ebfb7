package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"
)

// runningOf is the report that a session runs.
func runningOf(s folder.State) guild.Running {
	return guild.Running{
		SessionID: s.SessionID, StartedAt: s.StartedAt, Provider: s.Provider, Metadata: s.Metadata,
		Cancel: guild.LocalGroup(s.PGID), Socket: s.Socket, Extra: s.Extra,
	}
}

// recordOf is the report of what a session came to, without its transcript.
func recordOf(s folder.State, d Decision, each []guild.Entry) *guild.Record {
	r := &guild.Record{
		SessionID: s.SessionID, Status: d.State, ExitCode: d.Code, Error: d.Error,
		Output: s.Output, ProviderSessionID: s.ProviderSessionID, Ended: s.Ended, Extra: s.Extra,
		Entries: &guild.Entries{Entries: s.Entries, Each: each}, TokenUsage: s.TokenUsage,
	}
	var said []string
	if t := s.Tools; t != nil {
		if said = append(said, failedCalls(t)); t.Open > 0 {
			said = append(said, words.Count(int(t.Open), "call", "calls")+" of the guild's tools had no answer when the session ended")
		}
		if t.Configured+int(t.Calls) > 0 {
			r.Tools = &t.ToolCounts
		}
	}
	if said = append(said, s.Store); s.Store == "" && s.Waiting > 0 {
		said = append(said, fmt.Sprintf("the guild's table does not have %s of the transcript yet", words.Count(int(s.Waiting), "message", "messages")))
	}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	r.Warnings, r.Lost, r.Waiting = slices.Concat(s.Warnings, said), s.Lost, s.Waiting
	if s.CostUSD != nil {
		if text, err := json.Marshal(*s.CostUSD); err == nil { // it is finite: it came as JSON
			r.CostUSD = json.Number(text)
		}
	}
	if s.Result != nil {
		r.Result = &guild.Result{Subtype: s.Result.Subtype, IsError: s.Result.IsError, NumTurns: s.Result.NumTurns}
	}
	if s.Exit != nil {
		r.Signal = s.Exit.Signal
	}
	if l := s.RateLimit; l != nil {
		r.TerminationTag = &guild.TerminationTag{Kind: "rate-limit", Source: l.Source, Detail: l.Detail}
		if l.ResetsAt != nil {
			r.ResetsAt = l.ResetsAt.UTC().Format("2006-01-02T15:04:05Z")
		}
	}
	if d.State == folder.Failed {
		r.TerminationDiagnostic = &guild.TerminationDiagnostic{ExitCode: d.Code, StderrExcerpt: s.Stderr}
	}
	return r
}

// tallied copies what the client's messages said so far.
func tallied(s *folder.State, t *stream.Tally) {
	if t.SessionID != "" {
		s.ProviderSessionID = t.SessionID
	}
	if t.Cost != nil {
		s.CostUSD = t.Cost
	}
	if t.Usage != nil {
		s.TokenUsage = t.Usage
	}
	for _, name := range t.Opened() {
		if !slices.Contains(s.Opened, name) {
			s.Opened = append(s.Opened, name)
		}
	}
	s.Output, s.OutputCut = "", false
	if t.Text != nil {
		s.Output, s.OutputCut = folder.Cut(*t.Text, folder.MaxOutput)
	}
	if r := t.Result; r != nil {
		s.Result = &folder.Result{Subtype: r.Subtype, IsError: r.IsError, NumTurns: int(r.Turns), At: r.At.UTC()}
		s.ErrorText, _ = folder.Cut(r.Text, 1<<10)
	}
	if l := t.RateLimit; l != nil && (s.RateLimit == nil || s.RateLimit.ResetsAt == nil) {
		s.RateLimit = &folder.RateLimit{Detail: l.Detail, Source: "ndjson-result", At: time.Now().UTC()}
		if at := l.ResetsAt.UTC(); !at.IsZero() {
			s.RateLimit.ResetsAt = &at
		}
	}
}

// toolsUsed copies what the client did with the guild's tools.
func (h *host) toolsUsed(s *folder.State) {
	if h.proxy == nil {
		return
	}
	t := h.proxy.Stats()
	t.Required = h.RequireTools || h.Config.RequireTools
	s.Tools = &t
}
