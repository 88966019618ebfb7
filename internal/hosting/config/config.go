// Package config reads the configuration of a hosted session, a JSON object on the host's stdin,
// and says exactly what is wrong with one.
package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/words"
)

// Config is a configuration that [Parse] accepted. Paths are absolute and clean.
type Config struct {
	SessionID          string
	GuildToolURL       string // http or https, without a trailing slash
	DBPath             string
	LogDir             string // logs beside the database if none was given
	ClaudeArgs         []string
	Cwd                string
	Env                map[string]string
	Prompt             string // may be empty, see [Config.HasPrompt]
	Tools              []Tool
	RequireTools       bool   // a session that could use none of them has failed
	StartedAt          string // RFC 3339, as the config spells it
	Provider           string
	Metadata           json.RawMessage `json:",omitempty"` // an object, or nil
	Limits             budget.Plan     // what may be spent; the host's flags apply too
	SystemPromptTmpDir string          // "" if there is none
	Extra              map[string]json.RawMessage
}

// Tool is a tool of the guild that the session may call.
type Tool struct {
	Name        string
	Description string
	Params      json.RawMessage // an object: a JSON schema without its type
	Method      string          // GET, POST or DELETE
	// Idempotent says that the guild runs calls with the same Idempotency-Key once, so that a call
	// may be repeated even if it may have reached the guild. The header is always sent, but a guild
	// that ignores it would run the tool twice.
	Idempotent bool
}

// Problem says what is wrong with a configuration.
type Problem struct {
	Path   string // such as tools[2].method or env.HOME; "" is the whole
	Reason string // follows the path in a sentence: must be a string, and is a number
	Cause  error  // the system's error, if that is the problem; else nil
}

// Unwrap returns the cause.
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

// reason returns an error on one line, whatever paths it contains.
func reason(err error) string { return words.Line(err.Error()) }

// MaxSize is the largest configuration, in bytes.
const MaxSize = 64 << 20

// Read reads a configuration to its end. An empty or too large one, or one that does not end before
// ctx, is a [*Problem]; after the last a goroutine still reads r.
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

// decode returns the members of the object that text must be.
func decode(text []byte) (map[string]json.RawMessage, *Problem) {
	body := bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	mark := len(text) - len(body)
	switch {
	case len(text) > MaxSize:
		return nil, tooLarge()
	case len(bytes.TrimSpace(body)) == 0:
		return nil, &Problem{Reason: "on stdin is empty: write one JSON object"}
	}
	if !utf8.Valid(body) {
		at := 0
		for r, size := rune(0), 0; r != utf8.RuneError || size != 1; at += size {
			r, size = utf8.DecodeRune(body[at:])
		}
		return nil, &Problem{Reason: "is not UTF-8 at " + place(body, at-1, mark)}
	}
	// Validated first: taking it apart needs more memory than it has bytes.
	err := json.Unmarshal(body, &struct{}{})
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := max(0, int(syntax.Offset)-1)
		if strings.HasPrefix(syntax.Error(), "unexpected end") {
			at = len(body)
		}
		return nil, &Problem{Reason: fmt.Sprintf("is no valid JSON at %s: %v", place(body, at, mark), syntax)}
	}
	body = bytes.TrimSpace(body)
	switch {
	case kind(body) != "an object":
		return nil, &Problem{Reason: "must be one JSON object, and is " + kind(body)}
	case flat.TooDeep(body):
		return nil, &Problem{Reason: fmt.Sprintf("is nested deeper than %d levels", flat.MaxDepth)}
	}
	members, _, many := apart(body)
	if many {
		return nil, &Problem{Reason: manyMembers}
	}
	return members, nil
}

// maxMembers is more members than an object or array of a config ever has. Taking tens of millions
// apart would need gigabytes.
const maxMembers = 100_000

const manyMembers = "must have at most 100000 members, and has more"

// apart takes a valid object or array apart. Elements of an array have no names. many says that
// there are more than maxMembers.
func apart(value []byte) (members map[string]json.RawMessage, all []json.RawMessage, many bool) {
	d := json.NewDecoder(bytes.NewReader(value))
	open, _ := d.Token() // it is valid, as is all that follows
	members = map[string]json.RawMessage{}
	for name := json.Token(""); d.More(); {
		if len(all) == maxMembers {
			return nil, nil, true
		}
		if open == json.Delim('{') {
			name, _ = d.Token()
		}
		var v json.RawMessage
		_ = d.Decode(&v)
		members[name.(string)], all = v, append(all, v)
	}
	return members, all, false
}

// place words an offset for people; skipped is how many bytes came before text.
func place(text []byte, at, skipped int) string {
	before := text[:min(at, len(text))]
	line := bytes.Count(before, []byte("\n"))
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d (byte %d)", line+1, column+1, skipped+at)
}

func kind(value []byte) string {
	switch {
	case len(value) == 0:
		return "nothing"
	case value[0] == '{':
		return "an object"
	case value[0] == '[':
		return "an array"
	case value[0] == '"':
		return "a string"
	case value[0] == 't' || value[0] == 'f':
		return "a boolean"
	case value[0] == 'n':
		return "null"
	}
	return "a number"
}
