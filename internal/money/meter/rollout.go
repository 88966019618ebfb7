package meter

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
)

// rollout counts a line of a transcript of Codex's, of which each request has one with its
// usage. The model is that of the turn.
func (s *State) rollout(l *flat.Members, at int64) {
	payload := l.Value("payload")
	switch l.String("type") {
	case "token_usage_record":
		s.usage(payload, len(s.parts)-1, 0)
	case "event_msg":
		switch item := payload.Get("item"); itemOf(payload) {
		case "UserMessage", "HookPrompt":
			s.begin(l, at)
		case "CollabAgentToolCall":
			s.meet(item)
		}
	case "turn_context":
		if model := payload.Get("model").Text(); model != "" {
			s.Model = clip(model)
		}
	}
}

// itemOf is the type of the item that an event says was completed, "" for another event.
func itemOf(payload flat.Value) string {
	if payload.Get("type").Text() != "item_completed" {
		return ""
	}
	return payload.Get("item").Get("type").Text()
}

func (s *State) usage(payload flat.Value, in int, at int64) {
	if id := payload.Get("response_id").Text(); id != "" {
		s.ask(hash(id), s.Model, price.Usage{Tokens: rolloutTokens(payload.Get("usage"))}, in, at)
	}
}

// meet notes the subagents that a call is about. Each has a rollout of its own, named after it.
func (s *State) meet(call flat.Value) {
	for _, id := range call.Get("receiver_thread_ids").Items() {
		if name := hash(id.Text()); id.Text() != "" && len(s.agents) < maxAgents && s.agentNamed(name) < 0 {
			s.agents = append(s.agents, agent{name: name})
		}
	}
}

// maxRollouts is how many names of a day's folder are read: it has all sessions of a person.
const maxRollouts = 20_000

// countRollouts counts what the subagents that were met asked for.
func (s *State) countRollouts(limit int64) {
	if len(s.agents) == 0 {
		return
	}
	for _, dir := range daysOf(filepath.Dir(s.Transcript), time.Now()) {
		names, _, err := disk.Names(dir, maxRollouts)
		if err != nil {
			continue // nothing began on that day
		}
		slices.Sort(names)
		for _, name := range names {
			if thread := hash(threadOf(name)); s.agentNamed(thread) >= 0 {
				limit -= s.countAgent(filepath.Join(dir, name), thread, max(1, limit), s.rolloutOfAgent)
			}
		}
	}
}

func (s *State) rolloutOfAgent(l *flat.Members) {
	payload := l.Value("payload")
	switch l.String("type") {
	case "token_usage_record":
		s.usage(payload, s.partAt(timeOf(l)), timeOf(l))
	case "event_msg":
		if itemOf(payload) == "CollabAgentToolCall" {
			s.meet(payload.Get("item"))
		}
	}
}

// daysOf are the folders with the rollouts of a session that began in dir, and of subagents
// that began today or yesterday: YEAR/MONTH/DAY, by the clock of the place.
func daysOf(dir string, now time.Time) []string {
	dirs := []string{dir}
	root := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	if _, err := time.Parse("2006/01/02", strings.TrimPrefix(filepath.ToSlash(dir), filepath.ToSlash(root)+"/")); err != nil {
		return dirs
	}
	for _, day := range []time.Time{now.AddDate(0, 0, -1), now} {
		if other := filepath.Join(root, filepath.FromSlash(day.Format("2006/01/02"))); other != dir {
			dirs = append(dirs, other)
		}
	}
	return dirs
}

// threadOf is the name of the session or subagent of a rollout, rollout-TIME-NAME.jsonl with
// a UUID for the name, "" for another file.
func threadOf(file string) string {
	const uuid = 36
	name, isRollout := strings.CutPrefix(strings.TrimSuffix(file, ".jsonl"), "rollout-")
	if !isRollout || len(name) <= uuid || name[len(name)-uuid-1] != '-' {
		return ""
	}
	return name[len(name)-uuid:]
}

// rolloutTokens are those of a usage whose input contains what was cached.
func rolloutTokens(usage flat.Value) price.Tokens {
	of := func(name string) int64 { return number(usage, name) }
	t := price.Tokens{Output: of("output_tokens"), CacheRead: of("cached_input_tokens"), CacheWrite: of("cache_write_input_tokens")}
	t.Input = max(0, of("input_tokens")-t.CacheRead-t.CacheWrite)
	return t
}
