package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/hosting/folder"
)

// Parse reads a configuration. Its error is a [*Problem], the first in the order of the fields; the
// config then has all valid fields, so that the failure can be reported to the guild. Parse looks
// at no file: see [Config.Check].
func Parse(text []byte) (*Config, error) {
	c := &Config{}
	members, problem := decode(text)
	if problem != nil {
		return c, problem
	}
	p := &parser{members: members}
	p.identity(c)
	p.places(c)
	c.ClaudeArgs = p.arguments()
	c.Env = p.environment()
	c.Prompt, _ = p.text("prompt")
	c.Tools = p.tools()
	c.RequireTools = p.flag("requireTools")
	p.facts(c)
	p.cleanUp(c)
	c.Limits = p.limits()
	if len(p.members) > 0 { // members that nothing took
		c.Extra = p.members
	}
	if p.problem != nil {
		return c, p.problem
	}
	return c, nil
}

// HasPrompt reports whether the prompt is work: a blank one is not. Without one a session, resumed
// or not, starts only if entries wait in its inbox: the client refuses to run without input.
func (c *Config) HasPrompt() bool { return strings.TrimSpace(c.Prompt) != "" }

// NothingToDo is the problem of a session with neither a prompt nor a waiting entry.
func NothingToDo() *Problem {
	return &Problem{Path: "prompt", Reason: "is empty, and no entry waits in the session's inbox: give one of them"}
}

// parser takes the members it reads out of members, and keeps the first problem.
type parser struct {
	members map[string]json.RawMessage
	within  string // precedes their names in a path
	problem *Problem
}

func (p *parser) fail(path, format string, args ...any) {
	if p.problem == nil {
		p.problem = &Problem{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
}

// take returns a member, nil if it is missing or null.
func (p *parser) take(name string) json.RawMessage {
	v := p.members[name]
	delete(p.members, name)
	if kind(v) == "null" {
		return nil
	}
	return v
}

// need is take for a required member.
func (p *parser) need(name string) (json.RawMessage, bool) {
	v := p.take(name)
	if v == nil {
		p.fail(p.within+name, "is missing")
	}
	return v, v != nil
}

// text reads a required string.
func (p *parser) text(name string) (s string, ok bool) {
	v, ok := p.need(name)
	if ok {
		s, ok = p.stringAt(p.within+name, v)
	}
	return s, ok
}

// textIfAny reads an optional string.
func (p *parser) textIfAny(name string) (s string, ok bool) {
	if v := p.take(name); v != nil {
		s, ok = p.stringAt(p.within+name, v)
	}
	return s, ok && s != ""
}

// objectIfAny reads an optional object, as it is.
func (p *parser) objectIfAny(name string) json.RawMessage {
	if v := p.take(name); v != nil && p.isA("an object", p.within+name, v) {
		return v
	}
	return nil
}

func (p *parser) stringAt(path string, value json.RawMessage) (s string, ok bool) {
	if kind(value) != "a string" || json.Unmarshal(value, &s) != nil {
		p.fail(path, "must be a string, and is %s", kind(value))
		return "", false
	}
	return s, true
}

// flag reads an optional boolean.
func (p *parser) flag(name string) bool {
	v := p.take(name)
	return v != nil && p.isA("a boolean", p.within+name, v) && v[0] == 't'
}

// partsAt reads the members of an object, or the elements of an array.
func (p *parser) partsAt(want, path string, value json.RawMessage) (members map[string]json.RawMessage, all []json.RawMessage, ok bool) {
	if !p.isA(want, path, value) {
		return nil, nil, false
	}
	members, all, many := apart(value)
	if many {
		p.fail(path, manyMembers)
	}
	return members, all, !many
}

func (p *parser) isA(want, path string, value json.RawMessage) bool {
	if kind(value) != want {
		p.fail(path, "must be %s, and is %s", want, kind(value))
		return false
	}
	return true
}

// identity reads who the session is, and to whom it reports.
func (p *parser) identity(c *Config) {
	if id, ok := p.text("sessionId"); !ok {
	} else if err := folder.CheckID(id); err != nil {
		p.fail("sessionId", "%v", err)
	} else {
		c.SessionID = id
	}
	if raw, ok := p.text("guildToolUrl"); !ok {
	} else if wrong := CheckURL(raw); wrong != "" {
		p.fail("guildToolUrl", "%s", wrong)
	} else {
		c.GuildToolURL = strings.TrimRight(raw, "/")
	}
}

// CheckURL says why a text is no guild URL, "" if it is one. It never repeats the text, which may
// hold a password.
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

// places reads the paths, the working directory first: the others may be relative to it.
func (p *parser) places(c *Config) {
	db, hasDB := p.path("dbPath", p.text)
	logs, hasLogs := p.path("logDir", p.textIfAny)
	cwd, ok := p.path("cwd", p.text)
	if ok {
		abs, err := filepath.Abs(cwd)
		if err != nil {
			p.fail("cwd", "is relative, and this process has no working directory: give an absolute path")
			ok = false
		}
		c.Cwd = abs
	}
	if hasDB && (ok || filepath.IsAbs(db)) {
		c.DBPath = within(c.Cwd, db)
	}
	switch {
	case hasLogs && (ok || filepath.IsAbs(logs)):
		c.LogDir = within(c.Cwd, logs)
	case c.DBPath != "" && !hasLogs:
		c.LogDir = filepath.Join(filepath.Dir(c.DBPath), "logs")
	}
}

func (p *parser) path(name string, read func(string) (string, bool)) (string, bool) {
	s, ok := read(name)
	switch {
	case !ok:
	case s == "":
		p.fail(name, "must not be empty")
		ok = false
	case strings.ContainsRune(s, 0):
		p.fail(name, "must hold no NUL byte")
		ok = false
	}
	return s, ok
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// maxArgument is the longest argument, or variable with its name, that Linux takes (execve(2),
// MAX_ARG_STRLEN, without the trailing NUL).
const maxArgument = 128<<10 - 1

func (p *parser) arguments() (args []string) {
	value, ok := p.need("claudeArgs")
	if !ok {
		return nil
	}
	_, all, _ := p.partsAt("an array", "claudeArgs", value)
	for i, v := range all {
		s, ok := p.word("claudeArgs["+strconv.Itoa(i)+"]", v, 0, "")
		if !ok {
			return nil
		}
		args = append(args, s)
	}
	return args
}

func (p *parser) environment() map[string]string {
	env := map[string]string{}
	value, ok := p.need("env")
	if !ok {
		return env
	}
	members, _, _ := p.partsAt("an object", "env", value)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := member("env", name)
		if name == "" {
			p.fail(path, "must have a name")
		} else if strings.ContainsAny(name, "=\x00") {
			p.fail(path, "must have a name without '=' and NUL bytes")
		}
		env[name], _ = p.word(path, members[name], len(name)+1, " with its name")
	}
	return env
}

// word reads a string for a program's start, to which more bytes are added.
func (p *parser) word(path string, value json.RawMessage, more int, with string) (s string, ok bool) {
	if s, ok = p.stringAt(path, value); !ok {
		return "", false
	}
	if strings.ContainsRune(s, 0) {
		p.fail(path, "must hold no NUL byte")
	} else if more += len(s); more > maxArgument {
		p.fail(path, "must have at most %d bytes%s, and has %d: no program can be started with more", maxArgument, with, more)
	} else {
		return s, true
	}
	return "", false
}

// plain are the characters of a name that needs no quotes.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// member is the path of an object's member.
func member(path, name string) string {
	if name != "" && len(name) <= 100 && strings.Trim(name, plain) == "" {
		return path + "." + name
	}
	return path + "[" + quoted(name) + "]"
}

// quoted spells a foreign text for a message.
func quoted(s string) string {
	begin, more := folder.Cut(s, 60)
	if more {
		return strconv.QuoteToASCII(begin) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// facts reads what is passed on to the guild unchanged.
func (p *parser) facts(c *Config) {
	if at, ok := p.text("startedAt"); ok {
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			p.fail("startedAt", "must be a time such as 2026-05-01T12:00:00Z (RFC 3339), and is %s", quoted(at))
		} else {
			c.StartedAt = at
		}
	}
	c.Provider, _ = p.text("provider")
	c.Metadata = p.objectIfAny("metadata")
}

// cleanUp reads which directory is deleted at the session's end. A typo there must not delete what
// somebody needs.
func (p *parser) cleanUp(c *Config) {
	const name = "systemPromptTmpDir"
	dir, ok := p.path(name, p.textIfAny)
	if !ok {
		return
	}
	if !filepath.IsAbs(dir) {
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
