// Package config reads the configuration of a hosted session, one JSON object that
// a guild writes to the host's stdin, and says exactly what is wrong with one.
package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/words"
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

// Check looks at what the config names: the working directory and the database's
// place. Its error is a [*Problem].
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
		return &Problem{Path: "dbPath", Reason: "cannot be looked at: " + reason(err)}
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
		return &Problem{Path: path, Reason: "needs a directory that cannot be looked at: " + reason(err)}
	case !info.IsDir:
		return &Problem{Path: path, Reason: "needs a directory, and this is none: " + words.Line(dir)}
	}
	if err := unix.Access(dir, mode); err != nil {
		return &Problem{Path: path, Reason: "needs a directory that this user may " + to + ": " + words.Line(dir) + ": " + err.Error()}
	}
	return nil
}

// reason is an error on one line, whatever the path in it has.
func reason(err error) string { return words.Line(err.Error()) }

// MaxSize is the largest configuration, in bytes.
const MaxSize = 64 << 20

// Read reads a configuration to its end. What is empty, too large or does not end
// before ctx is a [*Problem]; after the latter a goroutine still reads r.
func Read(ctx context.Context, r io.Reader) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
		read <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, &Problem{Reason: "on stdin did not end in time: write one JSON object and close it"}
	case o := <-read:
		switch {
		case o.err != nil:
			return nil, fmt.Errorf("read the config: %w", o.err)
		case len(o.text) > MaxSize:
			return nil, tooLarge()
		}
		return o.text, nil
	}
}

func tooLarge() *Problem { return &Problem{Reason: "on stdin is larger than 64 MiB"} }
