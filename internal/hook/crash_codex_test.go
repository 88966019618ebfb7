package hook_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Situations of a Stop and of a session's start apply to both clients.
func init() {
	for name, s := range situations {
		if strings.Contains(s.stdin, `"Stop"`) || strings.Contains(s.stdin, `"SessionStart"`) {
			s.codex = true
			situations["codex, "+name] = s
		}
	}
}

// input translates Claude Code's hook input into the words of the situation's client.
func (s situation) input(stdin, dir string) string {
	stdin = inDir(stdin, dir)
	var in map[string]any
	if !s.codex || json.Unmarshal([]byte(stdin), &in) != nil {
		return stdin
	}
	in["turn_id"], in["transcript_path"] = in["prompt_id"], rolloutOf(dir, in["session_id"].(string))
	delete(in, "prompt_id")
	text, err := json.Marshal(in)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func rolloutOf(dir, session string) string {
	return filepath.Join(dir, "rollout-2026-01-02T03-04-05-"+session[max(0, len(session)-40):]+".jsonl")
}

// happened appends what the client writes to its transcript before a Stop: the prompt and the reply.
func (s situation) happened(t testing.TB, stdin, dir string) {
	var in struct {
		Event   string `json:"hook_event_name"`
		Session string `json:"session_id"`
		Prompt  string `json:"prompt_id"`
		Reply   string `json:"last_assistant_message"`
	}
	if !s.codex || json.Unmarshal([]byte(stdin), &in) != nil || in.Event != "Stop" {
		return
	}
	asked := rolloutLines("user", "hello", in.Prompt)
	if text, handed := strings.CutPrefix(in.Reply, "reply to "); handed {
		asked = hookPrompt(text)
	}
	said := rolloutLines("assistant", in.Reply, in.Prompt)
	appendTo(t, rolloutOf(dir, in.Session), asked+said)
}

// rolloutLines returns the lines that Codex writes where Claude Code writes one.
func rolloutLines(role, text, turn string) string {
	if role == "assistant" {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}`+"\n", text)
	}
	return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"task_started","turn_id":%q}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage"}}}
`, turn)
}

// hookPrompt returns Codex's line for the texts with which the Stop hooks of one event blocked.
func hookPrompt(texts ...string) string {
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprintf(`{"text":%q}`, text))
	}
	return `{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"HookPrompt","fragments":[` + strings.Join(all, ",") + "]}}}\n"
}

func taskComplete(turn, reply string) string {
	return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"task_complete","turn_id":%q,"last_agent_message":%q}}`+"\n", turn, reply)
}
