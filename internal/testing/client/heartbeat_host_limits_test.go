package client

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
	"heartbeat/internal/words"
)

// limitedHouse has a model that asks for a command again and again about [e1], and answers
// other prompts: all once later ones were sent.
func limitedHouse(t *testing.T, command string) (h *house, sent func()) {
	t.Helper()
	gate := make(chan struct{})
	h = newHouse(t, func(r model.Request) model.Reply {
		<-gate
		if tag := lastTag(r); command == "" || tag != "[e1]" && len(r.ToolResults) == 0 {
			return model.Text(ownReply(tag)).Using(someTokens)
		}
		return model.Tool("Bash", map[string]any{"command": command}).Using(someTokens)
	})
	open := func() {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
	t.Cleanup(open)
	return h, open
}

// fates are those of the report's entries, and why.
func fates(s guild.Session) (all []string) {
	entries, _ := reported(s, "entries").(map[string]any)
	each, _ := entries["each"].([]any)
	for _, e := range each {
		one, _ := e.(map[string]any)
		why, _ := one["why"].(string)
		all = append(all, strings.TrimSuffix(one["fate"].(string)+": "+why, ": "))
	}
	return all
}

// conversations are the sessions in a transcript.
func (h *house) conversations(id string) int {
	_, messages := h.transcript(id)
	seen := map[string]bool{}
	for _, m := range messages {
		seen[m.Session] = true
	}
	return len(seen)
}

// A prompt that runs away is stopped at its limit, which flags or config may set. The
// next one is answered in a fresh conversation, and the report says what happened.
func TestHostedRunaway(t *testing.T) {
	Find(t)
	limit := unhurried(t, 20*time.Second, clients) // the next prompt has it as well
	commands := 1 + int(limit/(2*time.Minute))     // after two minutes the client itself ends a command, and asks for the next one
	for name, c := range map[string]struct {
		command string
		flags   []string
		limits  map[string]any
		pty     bool
		most    int // requests of the prompt
		says    string
	}{
		"tokens":            {command: "true", flags: []string{"--max-tokens-per-entry", "8k"}, most: 8, says: `^dead-lettered: over_budget: it took 8800 of 8000 tokens$`},
		"tokens, by config": {command: "true", flags: []string{"--max-tokens-per-entry", "1M"}, limits: map[string]any{"max-tokens-per-entry": "8k"}, most: 8, says: `^dead-lettered: over_budget: it took 8800 of 8000 tokens$`},
		"time":              {command: "tail -f /dev/null", limits: map[string]any{"max-time-per-entry": limit.String()}, most: commands, says: `^dead-lettered: over_budget: it took .* of ` + words.Took(limit) + `$`},
		"dollars":           {command: "true", limits: map[string]any{"max-cost-per-entry": 0.05}, most: 18, says: `^dead-lettered: over_budget: it cost 0.05\d* of 0.05 USD$`},
		"dollars, terminal": {command: "true", pty: true, limits: map[string]any{"max-cost-per-entry": 0.05}, most: 9, says: `^dead-lettered: over_budget: it cost 0.05\d* of 0.05 USD$`},
	} {
		t.Run(name, func(t *testing.T) {
			h, sent := limitedHouse(t, c.command)
			config := h.seed("ses-limit", "first [e1]")
			h.flags = c.flags
			if c.limits != nil {
				config["limits"] = c.limits
			}
			if c.pty {
				h.flags = append(h.flags, "--pty")
				config["claudeArgs"] = append([]string{"--setting-sources", "user"}, anyCommand...) // a dialog would ask about the risks of more
			}
			h.start(config)
			h.send("ses-limit", "second [e2]")
			sent()
			s := h.await(minutes(t), "ses-limit")
			t.Log(fates(s), reported(s, "error"), reported(s, "costUsd"), reported(s, "tokenUsage"))
			assert.Equal(t, "failed", s.Status)
			require.Len(t, fates(s), 2)
			assert.Equal(t, "answered", fates(s)[0])
			assert.Regexp(t, c.says, fates(s)[1])
			if name == "time" {
				assert.GreaterOrEqual(t, tookOf(t, fates(s)[1]), limit)
			}
			assert.Contains(t, reported(s, "error"), "1 of 2 prompts answered, 1 set aside as dead letters")
			assert.Equal(t, 2, h.conversations("ses-limit"))
			assert.NotZero(t, reported(s, "costUsd"))
			n := 0
			for _, r := range h.Model.MainRequests() {
				if tag := lastTag(r); tag == "[e1]" || tag == "" && len(r.ToolResults) > 0 {
					n++
				}
			}
			assert.LessOrEqual(t, n, c.most, "requests of the prompt")
			h.isClean("ses-limit")
		})
	}
}

// A prompt that runs away over the day's dollars is stopped, too: set aside where it alone
// reached them, or given back until midnight.
func TestHostedRunawayDay(t *testing.T) {
	for name, c := range map[string]struct {
		flags, args []string
		most        int // requests, at 0.003 or at 0.006 dollars
		fate, says  string
	}{
		"print mode": {nil, nil, 18, "dead-lettered: over_budget: in one day it cost 0.051 of 0.05 USD", "set aside"},
		"terminal":   {[]string{"--pty"}, append([]string{"--setting-sources", "user"}, anyCommand...), 10, "queued", "today cost 0.054 of 0.05 USD"},
	} {
		t.Run(name, func(t *testing.T) {
			h, sent := limitedHouse(t, "true")
			h.flags = append(c.flags, "--inbox", h.inbox, "--max-cost-per-day", "0.05")
			config := h.seed("ses-limit", "first [e1]")
			if c.args != nil {
				config["claudeArgs"] = c.args
			}
			h.start(config)
			sent()
			s := h.await(minutes(t), "ses-limit")
			assert.Equal(t, "failed", s.Status)
			assert.Equal(t, []string{c.fate}, fates(s))
			assert.Contains(t, reported(s, "error"), c.says)
			assert.LessOrEqual(t, h.turns(), c.most)
			h.isClean()
		})
	}
}

// Over the day's limit the inbox is paused, the report says so, and no other session
// starts on it before midnight.
func TestHostedDayLimit(t *testing.T) {
	h, sent := limitedHouse(t, "")
	h.flags = []string{"--inbox", h.inbox, "--max-tokens-per-day", "2k"}
	h.start(h.seed("ses-limit", "first [e1]"))
	for _, text := range []string{"second [e2]", "third [e3]", "fourth [e4]", "fifth [e5]"} {
		h.send("ses-limit", text)
	}
	sent()
	s := h.await(minutes(t), "ses-limit")
	assert.Equal(t, "failed", s.Status)
	e := h.state("ses-limit").Entries
	assert.Equal(t, folder.Entries{Answered: e.Answered, Queued: 5 - e.Answered}, e)
	assert.LessOrEqual(t, e.Answered, 3, "the second reaches it, and one more may follow")
	warnings, _ := reported(s, "warnings").([]any)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "of 2000 tokens")

	cmd := h.host(append([]string{"start", "--claude", h.claude}, h.flags...)...)
	cmd.Stdin = strings.NewReader(asJSON(h.seed("ses-more", "sixth [e6]")))
	var said bytes.Buffer
	cmd.Stderr = &said
	require.Error(t, cmd.Run())
	assert.Equal(t, 75, cmd.ProcessState.ExitCode())
	assert.Contains(t, said.String(), "of 2000 tokens")
	assert.Contains(t, said.String(), time.Now().AddDate(0, 0, 1).Format("2006-01-02"))
	t.Log(said.String())
}
