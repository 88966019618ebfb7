package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/folder"
)

// Parse reads a configuration. Its error is the first [*Problem]; the config then has the valid ones of
// session, guild, database and unknown members, so that the failure can be reported to the guild. Parse
// does not check files: see [Config.Check].
func Parse(text []byte) (*Config, error) {
	c := &Config{}
	members, problem := decode(text)
	if problem != nil {
		return c, problem
	}
	p := &parser{members: members, problem: &Problem{}}
	id, ok := get[string](p, "sessionId", required)
	if err := folder.CheckID(id); err == nil {
		c.SessionID = id
	} else if ok {
		p.fail("sessionId", "%v", err)
	}
	address, ok := get[string](p, "guildToolUrl", required)
	if wrong := CheckURL(address); wrong == "" {
		c.GuildToolURL = strings.TrimRight(address, "/")
	} else if ok {
		p.fail("guildToolUrl", "%s", wrong)
	}
	here, _ := os.Getwd()                 // "" if there is none
	c.Cwd = p.path("cwd", required, here) // first: the other paths may be relative to it
	c.DBPath = p.path("dbPath", required, c.Cwd)
	if c.LogDir = p.path("logDir", optional, c.Cwd); c.LogDir == "" && c.DBPath != "" {
		c.LogDir = filepath.Join(filepath.Dir(c.DBPath), "logs")
	}
	args, _ := get[[]json.RawMessage](p, "claudeArgs", required)
	for i, v := range args {
		c.ClaudeArgs = append(c.ClaudeArgs, p.word(fmt.Sprintf("claudeArgs[%d]", i), v, 0, ""))
	}
	c.Env = p.environment()
	c.Prompt, _ = get[string](p, "prompt", required)
	c.Tools = p.tools()
	c.RequireTools, _ = get[bool](p, "requireTools", optional)
	if c.StartedAt, ok = get[string](p, "startedAt", required); ok {
		if _, err := time.Parse(time.RFC3339, c.StartedAt); err != nil {
			p.fail("startedAt", "must be a time such as 2026-05-01T12:00:00Z (RFC 3339), and is %s", quoted(c.StartedAt))
		}
	}
	c.Provider, _ = get[string](p, "provider", required)
	c.Metadata, _ = get[json.RawMessage](p, "metadata", optional)
	p.cleanUp(c)
	c.Limits = p.limits()
	if len(p.members) > 0 { // the unknown ones
		c.Extra = p.members
	}
	if p.failed() {
		return c, p.problem
	}
	return c, nil
}

const MaxSize = 64 << 20 // bytes of the largest configuration

func decode(text []byte) (map[string]json.RawMessage, *Problem) {
	all := bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	body := bytes.TrimSpace(all)
	switch {
	case len(text) > MaxSize:
		return nil, &Problem{Reason: "on stdin is larger than 64 MiB"}
	case len(body) == 0:
		return nil, &Problem{Reason: "on stdin is empty: write one JSON object"}
	case !utf8.Valid(body):
		return nil, &Problem{Reason: "is not UTF-8"}
	}
	// Validated first: the members need more memory than the text has bytes.
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(all, &struct{}{}); {
	case errors.As(err, &syntax):
		return nil, &Problem{Reason: fmt.Sprintf("is no valid JSON at byte %d: %v", syntax.Offset, syntax)}
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

// maxMembers is more members than an object or array of a config ever has. Tens of millions would need gigabytes.
const maxMembers = 100_000

const manyMembers = "must have at most 100000 members, and has more"

// apart splits a valid object or array, whose elements have no names. many is whether there are over maxMembers.
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

func kind(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// parser reads members, which it removes, and keeps the first problem.
type parser struct {
	members map[string]json.RawMessage
	within  string // precedes their names in a path
	problem *Problem
}

func (p *parser) fail(path, format string, args ...any) {
	if !p.failed() {
		p.problem.Path, p.problem.Reason = path, fmt.Sprintf(format, args...)
	}
}

func (p *parser) failed() bool { return p.problem.Reason != "" }

// Whether a member may be missing.
const (
	required = true
	optional = false
)

// get reads a member. ok is false if it is missing, null or of another kind than T.
func get[T any](p *parser, name string, need bool) (v T, ok bool) {
	value := p.members[name]
	delete(p.members, name)
	if value != nil && kind(value) != "null" {
		ok = p.read(p.within+name, value, &v)
	} else if need {
		p.fail(p.within+name, "is missing")
	}
	return v, ok
}

// read decodes a value: a string, a boolean, an array, or an object, which a RawMessage takes whole.
func (p *parser) read(path string, value json.RawMessage, into any) bool {
	want := "an object"
	switch into.(type) {
	case *string:
		want = "a string"
	case *bool:
		want = "a boolean"
	case *[]json.RawMessage:
		want = "an array"
	}
	if kind(value) != want {
		p.fail(path, "must be %s, and is %s", want, kind(value))
		return false
	}
	many := false
	switch into := into.(type) {
	case *[]json.RawMessage:
		_, *into, many = apart(value)
	case *map[string]json.RawMessage:
		*into, _, many = apart(value)
	default:
		_ = json.Unmarshal(value, into) // it is valid, and of this kind
	}
	if many {
		p.fail(path, manyMembers)
	}
	return !many
}

// CheckURL returns why a text is no guild URL, "" if it is one. It never repeats the text, which may hold a password.
func CheckURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return "must be an http or https URL, such as http://127.0.0.1:7471"
	case u.Hostname() == "":
		return "must name a host, such as http://127.0.0.1:7471"
	case u.User != nil:
		return "must hold no user name or password, since it is shown in logs"
	case strings.Contains(raw, " "):
		return "must hold no blanks"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(raw, "#"):
		return "must end with its path, without a query or fragment"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "must have a port from 1 to 65535"
		}
	}
	return ""
}

// path reads a path, which may be relative to dir, and makes it absolute and clean.
func (p *parser) path(name string, need bool, dir string) string {
	s, ok := get[string](p, name, need)
	switch {
	case !ok, s == "" && !need:
	case s == "":
		p.fail(name, "must not be empty")
	case strings.ContainsRune(s, 0):
		p.fail(name, "must hold no NUL byte")
	case filepath.IsAbs(s):
		return filepath.Clean(s)
	case dir == "":
		p.fail(name, "is relative, and this process has no working directory: give an absolute path")
	default:
		return filepath.Join(dir, s)
	}
	return ""
}

// maxArgument is the longest argument, or variable with its name, that Linux takes (execve(2),
// MAX_ARG_STRLEN, without the trailing NUL).
const maxArgument = 128<<10 - 1

func (p *parser) environment() map[string]string {
	env := map[string]string{}
	members, _ := get[map[string]json.RawMessage](p, "env", required)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := member("env", name)
		if name == "" {
			p.fail(path, "must have a name")
		} else if strings.ContainsAny(name, "=\x00") {
			p.fail(path, "must have a name without '=' and NUL bytes")
		}
		env[name] = p.word(path, members[name], len(name)+1, " with its name")
	}
	return env
}

// word reads an argument or variable of a program, which has more bytes besides this string.
func (p *parser) word(path string, value json.RawMessage, more int, with string) (s string) {
	p.read(path, value, &s)
	if strings.ContainsRune(s, 0) {
		p.fail(path, "must hold no NUL byte")
	} else if more += len(s); more > maxArgument {
		p.fail(path, "must have at most %d bytes%s, and has %d: no program can be started with more", maxArgument, with, more)
	}
	return s
}

// plain are the characters of a name that needs no quotes.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func member(path, name string) string {
	if name != "" && len(name) <= 100 && strings.Trim(name, plain) == "" {
		return path + "." + name
	}
	return path + "[" + quoted(name) + "]"
}

func quoted(s string) string {
	begin, more := folder.Cut(s, 60)
	if more {
		return strconv.QuoteToASCII(begin) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// cleanUp reads the directory that is deleted at the session's end. A typo must not delete what somebody needs.
func (p *parser) cleanUp(c *Config) {
	const name = "systemPromptTmpDir"
	dir, _ := get[string](p, name, optional)
	switch {
	case dir == "":
		return
	case strings.ContainsRune(dir, 0):
		p.fail(name, "must hold no NUL byte")
		return
	case !filepath.IsAbs(dir):
		p.fail(name, "must be an absolute path, since it is deleted at the session's end")
		return
	}
	dir = filepath.Clean(dir)
	home, _ := os.UserHomeDir() // "" if there is none
	for _, kept := range []struct{ name, path string }{
		{"working directory", c.Cwd}, {"database", c.DBPath}, {"log directory", c.LogDir},
		{"home directory", home}, {"directory of all temporary files", os.TempDir()},
	} {
		if rel, err := filepath.Rel(dir, kept.path); kept.path != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			p.fail(name, "must not contain the session's %s, since it is deleted at the session's end", kept.name)
			return
		}
	}
	c.SystemPromptTmpDir = dir
}
