// Package config reads the configuration of a hosted session, a JSON object, and names exactly what is wrong with it.
package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// Config is a configuration that [Parse] accepted. Paths are absolute and clean.
type Config struct {
	SessionID          string
	GuildToolURL       string // http or https, without a trailing slash
	DBPath             string
	LogDir             string // by default logs beside the database
	ClaudeArgs         []string
	Cwd                string
	Env                map[string]string
	Prompt             string // may be empty, see [Config.HasPrompt]
	Tools              []Tool
	RequireTools       bool   // a session that could use no tool has failed
	StartedAt          string // RFC 3339, as the config spells it
	Provider           string
	Metadata           json.RawMessage `json:",omitempty"` // an object, or nil
	Limits             price.Plan      // what may be spent; the host's flags apply too
	SystemPromptTmpDir string          // "" for none
	Extra              map[string]json.RawMessage
}

// Tool is a tool of the guild that the session may call.
type Tool struct {
	Name        string
	Description string
	Params      json.RawMessage // an object: a JSON schema without its type
	Method      string          // GET, POST or DELETE
	// Idempotent means that the guild runs calls with the same Idempotency-Key once, so a call may be repeated even if
	// it may have reached the guild. The header is always sent, but other guilds may ignore it and run the tool twice.
	Idempotent bool
}

// Problem is what is wrong with a configuration.
type Problem struct {
	Path   string // such as tools[2].method or env.HOME; "" for the whole
	Reason string // follows the path in a sentence, such as: must be a string, and is a number
	Cause  error  // the system's error, if there is one
}

func (p *Problem) Unwrap() error { return p.Cause }

func (p *Problem) Error() string {
	if p.Path == "" {
		return "the config " + p.Reason
	}
	return "the config's " + p.Path + " " + p.Reason
}

// Check checks the working directory and the database's directory on disk. Its error is a [*Problem].
func (c *Config) Check() error {
	if p := checkDir("cwd", c.Cwd, "enter", unix.X_OK); p != nil {
		return p
	}
	if p := checkDir("dbPath", filepath.Dir(c.DBPath), "write to", unix.W_OK|unix.X_OK); p != nil {
		return p
	}
	info, err := disk.StatFile(c.DBPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &Problem{Path: "dbPath", Reason: "cannot be read: " + words.Line(err.Error())}
	case info.IsDir:
		return &Problem{Path: "dbPath", Reason: "must be a file, and is a directory: " + words.Line(c.DBPath)}
	case !info.IsRegular:
		return &Problem{Path: "dbPath", Reason: "must be a regular file: " + words.Line(c.DBPath)}
	}
	if err := unix.Access(c.DBPath, unix.R_OK|unix.W_OK); err != nil {
		return &Problem{Path: "dbPath", Reason: "must be a file that this user may write: " + words.Line(c.DBPath) + ": " + err.Error()}
	}
	return nil
}

func checkDir(path, dir, to string, mode uint32) *Problem {
	info, err := disk.StatFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Problem{Path: path, Reason: "needs a directory that is not there: " + words.Line(dir)}
	case err != nil:
		return &Problem{Path: path, Reason: "needs a directory that cannot be read: " + words.Line(err.Error())}
	case !info.IsDir:
		return &Problem{Path: path, Reason: "needs a directory, and this is not one: " + words.Line(dir)}
	}
	if err := unix.Access(dir, mode); err != nil {
		return &Problem{Path: path, Reason: "needs a directory that this user may " + to + ": " + words.Line(dir) + ": " + err.Error()}
	}
	return nil
}

// HasPrompt reports whether the prompt is more than blanks. Without one, a session starts only if entries wait in its
// inbox: the client refuses to run without input.
func (c *Config) HasPrompt() bool { return strings.TrimSpace(c.Prompt) != "" }

// NothingToDo returns the problem of a session with neither a prompt nor a waiting entry.
func NothingToDo() *Problem {
	return &Problem{Path: "prompt", Reason: "is empty, and no entry waits in the session's inbox: give one of them"}
}
