// Package config reads the configuration of a hosted session, one JSON object that
// a guild writes to the host's stdin, and says exactly what is wrong with one.
package config

import (
	"encoding/json"

	"heartbeat/internal/money/budget"
)

// Config is a configuration that [Parse] accepted. Paths are absolute and clean.
type Config struct {
	SessionID          string
	GuildToolURL       string // http or https, without a slash at its end
	DBPath             string
	LogDir             string // beside the database, in logs/sessions, if none was given
	ClaudeArgs         []string
	Cwd                string
	Env                map[string]string
	Prompt             string // may be empty, see [Config.HasPrompt]
	Tools              []Tool
	RequireTools       bool   // a session that could use none of them has failed
	StartedAt          string // RFC 3339, as it was spelled
	Provider           string
	Metadata           json.RawMessage `json:",omitempty"` // an object, or nil
	Limits             budget.Plan     // what may be spent; the host's flags hold too
	SystemPromptTmpDir string          // "" if there is none
	Extra              map[string]json.RawMessage
}

// Tool is a tool of the guild that the session may call.
type Tool struct {
	Name        string
	Description string
	Params      json.RawMessage // an object: a JSON schema without its type
	Method      string          // GET, POST or DELETE
	// Idempotent says that the guild runs calls with the same Idempotency-Key once, so
	// that a call may be repeated even if it may have reached the guild. The header is
	// always sent, but a guild that ignores it would run the tool twice.
	Idempotent bool
}

// Problem says what is wrong with a configuration.
type Problem struct {
	Path   string // such as tools[2].method or env.HOME; "" is the whole
	Reason string // goes on after the path: must be a string, and is a number
	Cause  error  // of the system, if that is what was wrong; else nil
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

func (p *Problem) Error() string {
	if p.Path == "" {
		return "the config " + p.Reason
	}
	return "the config's " + p.Path + " " + p.Reason
}
