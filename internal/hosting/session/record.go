package session

import (
	"bytes"
	"encoding/json"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
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
		SessionID: s.SessionID, Status: string(d.State), ExitCode: d.Code, Error: d.Error,
		Output: s.Output, ProviderSessionID: s.ProviderSessionID, Ended: s.Ended, Warnings: s.Warnings, Extra: s.Extra,
		Entries: &guild.Entries{
			Answered: s.Entries.Answered, Queued: s.Entries.Queued,
			InFlight: s.Entries.InFlight, DeadLettered: s.Entries.DeadLettered, Each: each,
		},
	}
	if s.Store != "" {
		r.Warnings = append(r.Warnings[:len(r.Warnings):len(r.Warnings)], s.Store)
	}
	if s.CostUSD != nil {
		if text, err := json.Marshal(*s.CostUSD); err == nil { // it is finite: it came as JSON
			r.CostUSD = json.Number(text)
		}
	}
	if u := s.TokenUsage; u != nil {
		r.TokenUsage = &guild.TokenUsage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens}
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

// inMemory is a record that no file holds. Without its transcript if that cannot be read.
func inMemory(r *guild.Record) *guild.Body {
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		bare := *r
		bare.Transcript, bare.TranscriptMissing = nil, err.Error()
		b.Reset()
		_ = bare.Encode(&b) // a buffer takes everything
	}
	body := guild.BodyOf(b.Bytes())
	return &body
}

// factsOf are what a session's state says for the decision.
func factsOf(s folder.State) Facts {
	f := Facts{
		Broken: s.Broken, Ended: s.Ended, RateLimit: s.RateLimit, Result: s.Result,
		ErrorText: s.ErrorText, Exit: s.Exit, Entries: s.Entries,
	}
	f.After, _ = parseDuration(s.EndedAfter)
	if s.Cancel != nil {
		f.Cancelled = s.Cancel.By
	}
	return f
}
