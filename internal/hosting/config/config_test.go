package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/config"
)

// whole has every field, as the seed's provider writes them.
const whole = `{
  "sessionId": "ses-mnseaiv7-0a1b2c3d",
  "guildToolUrl": "http://127.0.0.1:7471",
  "dbPath": "/guild/.nexus/nexus.db",
  "logDir": "/guild/logs/sessions",
  "claudeArgs": ["--setting-sources", "user", "--model", ""],
  "cwd": "/guild/worktree",
  "env": {"A": "b", "EMPTY": "", "npm_config_x-y": "1"},
  "prompt": "do it",
  "tools": [
    {"name": "writ-list", "description": "lists", "params": {"properties": {"a": {"type": "string"}}, "required": ["a"]}, "method": "GET", "idempotent": true},
    {"name": "signal"}
  ],
  "requireTools": true,
  "startedAt": "2026-05-01T12:00:00.123Z",
  "provider": "claude-code",
  "metadata": {"writ": 1e400},
  "systemPromptTmpDir": "/tmp/nsg-detached-x",
  "more": [1, 2]
}`

// members is whole, to be changed.
func members(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(whole, "1e400", "1", 1)), &m))
	return m
}

func text(t testing.TB, m map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return b
}

func with(t testing.TB, name string, value any) []byte {
	t.Helper()
	m := members(t)
	m[name] = value
	return text(t, m)
}

func TestParse(t *testing.T) {
	c, err := config.Parse([]byte(whole))
	require.NoError(t, err)
	assert.Equal(t, &config.Config{
		SessionID: "ses-mnseaiv7-0a1b2c3d", GuildToolURL: "http://127.0.0.1:7471", DBPath: "/guild/.nexus/nexus.db",
		LogDir: "/guild/logs/sessions", ClaudeArgs: []string{"--setting-sources", "user", "--model", ""},
		Cwd: "/guild/worktree", Env: map[string]string{"A": "b", "EMPTY": "", "npm_config_x-y": "1"}, Prompt: "do it", RequireTools: true,
		Tools: []config.Tool{
			{Name: "writ-list", Description: "lists", Method: "GET", Idempotent: true,
				Params: json.RawMessage(`{"properties": {"a": {"type": "string"}}, "required": ["a"]}`)},
			{Name: "signal", Params: json.RawMessage("{}"), Method: "POST"},
		},
		StartedAt: "2026-05-01T12:00:00.123Z", Provider: "claude-code", Metadata: json.RawMessage(`{"writ": 1e400}`),
		SystemPromptTmpDir: "/tmp/nsg-detached-x", Extra: map[string]json.RawMessage{"more": json.RawMessage("[1, 2]")},
	}, c)
	again, err := config.Parse([]byte("\xef\xbb\xbf" + whole + "\n\n"))
	require.NoError(t, err, "with a byte order mark")
	assert.Equal(t, c, again)
}

func TestMayBeMissing(t *testing.T) {
	for _, missing := range []func(m map[string]any, name string){
		func(m map[string]any, name string) { delete(m, name) },
		func(m map[string]any, name string) { m[name] = nil },
	} {
		m := members(t)
		for _, name := range []string{"logDir", "metadata", "systemPromptTmpDir", "more"} {
			missing(m, name)
		}
		delete(m, "more")
		m["tools"] = []any{map[string]any{"name": "a", "description": nil, "params": nil, "method": nil}}
		c, err := config.Parse(text(t, m))
		require.NoError(t, err)
		assert.Equal(t, "/guild/.nexus/logs", c.LogDir)
		assert.Nil(t, c.Metadata)
		assert.Nil(t, c.Extra)
		assert.Empty(t, c.SystemPromptTmpDir)
		assert.Equal(t, []config.Tool{{Name: "a", Params: json.RawMessage("{}"), Method: "POST"}}, c.Tools)
	}
}

func TestEmptyValues(t *testing.T) {
	m := members(t)
	m["prompt"], m["tools"], m["env"], m["claudeArgs"] = " \n", []any{}, map[string]any{}, []any{}
	c, err := config.Parse(text(t, m))
	require.NoError(t, err)
	assert.False(t, c.HasPrompt())
	assert.Equal(t, " \n", c.Prompt)
	assert.Equal(t, "the config's prompt is empty, and no entry waits in the session's inbox: give one of them", config.NothingToDo().Error())
}

func TestPaths(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, c := range []struct{ cwd, db, logs, wantCwd, wantDB, wantLogs string }{
		{"/w", "x/../nexus.db", "logs", "/w", "/w/nexus.db", "/w/logs"},
		{"/w/", "/g//nexus.db", "", "/w", "/g/nexus.db", "/g/logs"},
		{"sub", "nexus.db", "../l", here + "/sub", here + "/sub/nexus.db", here + "/l"},
	} {
		m := members(t)
		m["cwd"], m["dbPath"], m["logDir"] = c.cwd, c.db, c.logs
		got, err := config.Parse(text(t, m))
		require.NoError(t, err)
		assert.Equal(t, []string{c.wantCwd, c.wantDB, c.wantLogs}, []string{got.Cwd, got.DBPath, got.LogDir})
	}
}

func TestGuildURL(t *testing.T) {
	for given, want := range map[string]string{
		"http://127.0.0.1:7471/":          "http://127.0.0.1:7471",
		"http://127.0.0.1:7471//":         "http://127.0.0.1:7471",
		"https://guild.example/base/":     "https://guild.example/base",
		"http://[::1]:7471":               "http://[::1]:7471",
		"http://localhost":                "http://localhost",
		"HTTP://guild.example:65535/a/b/": "HTTP://guild.example:65535/a/b",
	} {
		c, err := config.Parse(with(t, "guildToolUrl", given))
		require.NoError(t, err, given)
		assert.Equal(t, want, c.GuildToolURL)
	}
	for given, why := range map[string]string{
		"":                             "must be an http or https URL",
		"127.0.0.1:7471":               "must be an http or https URL",
		"localhost:7471":               "must be an http or https URL",
		"/api":                         "must be an http or https URL",
		"unix:///run/guild":            "must be an http or https URL",
		"http://a\nb":                  "must be an http or https URL",
		"http://a:port":                "must be an http or https URL",
		"http://%zz":                   "must be an http or https URL",
		"http:":                        "must name a host",
		"http://":                      "must name a host",
		"http://:7471":                 "must name a host",
		"http:guild":                   "must name a host",
		"http://hunter2@guild":         "must hold no user name or password",
		"http://me:hunter2@guild/":     "must hold no user name or password",
		"http://guild/a b":             "must hold no blanks",
		"http://guild/?token=hunter2":  "without a query or fragment",
		"http://guild?":                "without a query or fragment",
		"http://guild/#":               "without a query or fragment",
		"http://guild:0":               "must have a port from 1 to 65535",
		"http://guild:65536":           "must have a port from 1 to 65535",
		"http://guild:99999999999":     "must have a port from 1 to 65535",
		"http://me:hunter2@guild:port": "must be an http or https URL",
	} {
		_, err := config.Parse(with(t, "guildToolUrl", given))
		p := problem(t, err)
		assert.Equal(t, "guildToolUrl", p.Path, given)
		assert.Contains(t, p.Reason, why, given)
		assert.NotContains(t, p.Error(), "hunter2")
	}
}

func problem(t testing.TB, err error) *config.Problem {
	t.Helper()
	var p *config.Problem
	require.ErrorAs(t, err, &p)
	assert.NotContains(t, p.Error(), "\n", "one sentence")
	return p
}

func TestMissing(t *testing.T) {
	for _, name := range []string{"sessionId", "guildToolUrl", "dbPath", "claudeArgs", "cwd", "env", "prompt", "tools", "startedAt", "provider"} {
		m := members(t)
		delete(m, name)
		_, err := config.Parse(text(t, m))
		assert.Equal(t, &config.Problem{Path: name, Reason: "is missing"}, problem(t, err))
		_, err = config.Parse(with(t, name, nil))
		assert.Equal(t, "the config's "+name+" is missing", problem(t, err).Error())
		upper := members(t)
		upper[strings.ToUpper(name)] = upper[name]
		delete(upper, name)
		_, err = config.Parse(text(t, upper))
		assert.Equal(t, name, problem(t, err).Path, "names have a case")
	}
}

// Every field of a wrong type is named, and the fields beside it are kept.
func TestMistyped(t *testing.T) {
	kinds := map[string]any{
		"a number": 7, "a string": "s", "a boolean": true, "an array": []any{}, "an object": map[string]any{},
	}
	for name, want := range map[string]string{
		"sessionId": "a string", "guildToolUrl": "a string", "dbPath": "a string", "logDir": "a string",
		"claudeArgs": "an array", "cwd": "a string", "env": "an object", "prompt": "a string", "tools": "an array",
		"startedAt": "a string", "provider": "a string", "metadata": "an object", "systemPromptTmpDir": "a string",
		"requireTools": "a boolean",
	} {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			if kind == want {
				continue
			}
			c, err := config.Parse(with(t, name, kinds[kind]))
			assert.Equal(t, &config.Problem{Path: name, Reason: "must be " + want + ", and is " + kind}, problem(t, err))
			if name != "sessionId" {
				assert.Equal(t, "ses-mnseaiv7-0a1b2c3d", c.SessionID, "for the report of the failure")
			}
			if name != "dbPath" {
				assert.Equal(t, "/guild/.nexus/nexus.db", c.DBPath)
			}
			assert.Equal(t, name != "guildToolUrl", c.GuildToolURL != "")
		}
	}
}

func TestNested(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	tool := func(change map[string]any) []any {
		bad := map[string]any{"name": "b"}
		maps.Copy(bad, change)
		return []any{map[string]any{"name": "a"}, map[string]any{"name": "writ-list"}, bad}
	}
	for _, c := range []struct {
		field  string
		value  any
		path   string
		reason string
	}{
		{"sessionId", "a/../b", "sessionId", "must consist of letters, digits, '.', '_' and '-', since files are named after it, and has '/'"},
		{"sessionId", "", "sessionId", "must not be empty"},
		{"claudeArgs", []any{"a", 1}, "claudeArgs[1]", "must be a string, and is a number"},
		{"claudeArgs", []any{nil}, "claudeArgs[0]", "must be a string, and is null"},
		{"claudeArgs", []any{"a", "b\x00c"}, "claudeArgs[1]", "must hold no NUL byte"},
		{"claudeArgs", []any{long}, "claudeArgs[0]", "must have at most 131071 bytes, and has 131072: no program can be started with more"},
		{"env", map[string]any{"B": 1, "A": "ok"}, "env.B", "must be a string, and is a number"},
		{"env", map[string]any{"B": nil}, "env.B", "must be a string, and is null"},
		{"env", map[string]any{"TOKEN": "hunter2\x00"}, "env.TOKEN", "must hold no NUL byte"},
		{"env", map[string]any{"A=B": "hunter2"}, `env["A=B"]`, "must have a name without '=' and NUL bytes"},
		{"env", map[string]any{"A\x00": "hunter2"}, `env["A\x00"]`, "must have a name without '=' and NUL bytes"},
		{"env", map[string]any{"": "hunter2"}, `env[""]`, "must have a name"},
		{"env", map[string]any{"é\n": 1}, `env["\u00e9\n"]`, "must be a string, and is a number"},
		{"env", map[string]any{"A": long[2:] + "x"}, "env.A", "must have at most 131071 bytes with its name, and has 131073: no program can be started with more"},
		{"tools", []any{"a"}, "tools[0]", "must be an object, and is a string"},
		{"tools", []any{nil}, "tools[0]", "must be an object, and is null"},
		{"tools", []any{map[string]any{}}, "tools[0].name", "is missing"},
		{"tools", tool(map[string]any{"name": 1}), "tools[2].name", "must be a string, and is a number"},
		{"tools", tool(map[string]any{"name": "a"}), "tools[2].name", "is also that of tools[0]: a"},
		{"tools", tool(map[string]any{"name": ""}), "tools[2].name", "must have 1 to 128 characters, and has 0"},
		{"tools", tool(map[string]any{"name": long[:129]}), "tools[2].name", "must have 1 to 128 characters, and has 129"},
		{"tools", tool(map[string]any{"name": "a b"}), "tools[2].name", `must consist of letters, digits, '_', '.' and '-', and is "a b"`},
		{"tools", tool(map[string]any{"name": "é\n"}), "tools[2].name", `must consist of letters, digits, '_', '.' and '-', and is "\u00e9\n"`},
		{"tools", tool(map[string]any{"name": "a/b"}), "tools[2].name", `must consist of letters, digits, '_', '.' and '-', and is "a/b"`},
		{"tools", tool(map[string]any{"name": ".."}), "tools[2].name", `leads to no route of the guild: ".."`},
		{"tools", tool(map[string]any{"name": "a-.."}), "tools[2].name", `leads to no route of the guild: "a-.."`},
		{"tools", tool(map[string]any{"name": "-a"}), "tools[2].name", `leads to no route of the guild: "-a"`},
		{"tools", tool(map[string]any{"name": "a-"}), "tools[2].name", `leads to no route of the guild: "a-"`},
		{"tools", tool(map[string]any{"description": 1}), "tools[2].description", "must be a string, and is a number"},
		{"tools", tool(map[string]any{"params": []any{}}), "tools[2].params", "must be an object, and is an array"},
		{"tools", tool(map[string]any{"idempotent": "yes"}), "tools[2].idempotent", "must be a boolean, and is a string"},
		{"tools", tool(map[string]any{"method": 1}), "tools[2].method", "must be a string, and is a number"},
		{"tools", tool(map[string]any{"method": "get"}), "tools[2].method", `must be GET, POST or DELETE, and is "get"`},
		{"tools", tool(map[string]any{"method": "PATCH"}), "tools[2].method", `must be GET, POST or DELETE, and is "PATCH"`},
		{"tools", tool(map[string]any{"method": long}), "tools[2].method", `must be GET, POST or DELETE, and is "` + long[:60] + `"...`},
		{"dbPath", "", "dbPath", "must not be empty"},
		{"dbPath", "a\x00", "dbPath", "must hold no NUL byte"},
		{"logDir", "a\x00", "logDir", "must hold no NUL byte"},
		{"cwd", "", "cwd", "must not be empty"},
		{"startedAt", "yesterday", "startedAt", `must be a time such as 2026-05-01T12:00:00Z (RFC 3339), and is "yesterday"`},
		{"startedAt", "", "startedAt", `must be a time such as 2026-05-01T12:00:00Z (RFC 3339), and is ""`},
		{"startedAt", "2026-05-01", "startedAt", `must be a time such as 2026-05-01T12:00:00Z (RFC 3339), and is "2026-05-01"`},
		{"systemPromptTmpDir", "tmp", "systemPromptTmpDir", "must be an absolute path, since it is deleted at the session's end"},
		{"systemPromptTmpDir", "/", "systemPromptTmpDir", "must not contain the session's working directory, since it is deleted at the session's end"},
		{"systemPromptTmpDir", "/guild/worktree/", "systemPromptTmpDir", "must not contain the session's working directory, since it is deleted at the session's end"},
		{"systemPromptTmpDir", "/guild/x/../.nexus", "systemPromptTmpDir", "must not contain the session's database, since it is deleted at the session's end"},
		{"systemPromptTmpDir", "/guild/logs", "systemPromptTmpDir", "must not contain the session's log directory, since it is deleted at the session's end"},
	} {
		_, err := config.Parse(with(t, c.field, c.value))
		assert.Equal(t, &config.Problem{Path: c.path, Reason: c.reason}, problem(t, err))
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestCleanUpSparesWhatOthersUse(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	t.Setenv("TMPDIR", "/var/tmp")
	for dir, holds := range map[string]string{
		"/home": "home directory", "/home/me": "home directory",
		"/var": "directory of all temporary files", "/var/tmp/": "directory of all temporary files",
	} {
		_, err := config.Parse(with(t, "systemPromptTmpDir", dir))
		assert.Equal(t, "the config's systemPromptTmpDir must not contain the session's "+holds+
			", since it is deleted at the session's end", problem(t, err).Error())
	}
	for _, dir := range []string{"/home/me/x", "/var/tmp/x", "/home/m", "/guild/worktree2"} {
		c, err := config.Parse(with(t, "systemPromptTmpDir", dir))
		require.NoError(t, err)
		assert.Equal(t, dir, c.SystemPromptTmpDir)
	}
}

func TestOddToolNames(t *testing.T) {
	var tools []any
	for _, name := range []string{"a", "A.b_c-d", "...", "a..b", "a--b", "writ-link-kinds", "0", "_", strings.Repeat("n", 128)} {
		tools = append(tools, map[string]any{"name": name})
	}
	c, err := config.Parse(with(t, "tools", tools))
	require.NoError(t, err)
	assert.Len(t, c.Tools, len(tools))
}

func TestInvalidJSON(t *testing.T) {
	for given, want := range map[string]string{
		"":                     "the config on stdin is empty: write one JSON object",
		" \n\t":                "the config on stdin is empty: write one JSON object",
		"\xef\xbb\xbf":         "the config on stdin is empty: write one JSON object",
		"[]":                   "the config must be one JSON object, and is an array",
		" null ":               "the config must be one JSON object, and is null",
		`"x"`:                  "the config must be one JSON object, and is a string",
		"1":                    "the config must be one JSON object, and is a number",
		"false":                "the config must be one JSON object, and is a boolean",
		"{":                    "the config is no valid JSON at byte 1: unexpected end of JSON input",
		"{\n  \"é\": }":        "the config is no valid JSON at byte 11: invalid character '}' looking for beginning of value",
		"\xef\xbb\xbf{x":       "the config is no valid JSON at byte 2: invalid character 'x' looking for beginning of object key string",
		"{} {}":                "the config is no valid JSON at byte 4: invalid character '{' after top-level value",
		"{\"a\":\"\n\"}":       "the config is no valid JSON at byte 7: invalid character '\\n' in string literal",
		"{\"a\":\"\xff\"}":     "the config is not UTF-8",
		"{\n\"a\":\n\"é\xc3\"": "the config is not UTF-8",
		"\xff\xfe{\x00}\x00":   "the config is not UTF-8",
		`{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + "}":   "the config is nested deeper than 1000 levels",
		`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + "}": "the config is no valid JSON at byte 10005: invalid character '[' exceeded max depth",
		`{"env":{"TOKEN":"hunter2"}, "x": hunter2}`:                             "the config is no valid JSON at byte 34: invalid character 'h' looking for beginning of value",
	} {
		c, err := config.Parse([]byte(given))
		assert.Equal(t, want, problem(t, err).Error())
		assert.NotNil(t, c)
	}
}

func TestTwoMembersOfOneName(t *testing.T) {
	c, err := config.Parse([]byte(strings.Replace(whole, `"prompt"`, `"prompt": "first", "prompt"`, 1)))
	require.NoError(t, err)
	assert.Equal(t, "do it", c.Prompt, "the last one counts, as in the guild's own language")
}

func TestHalfASurrogatePair(t *testing.T) {
	c, err := config.Parse([]byte(strings.Replace(whole, "do it", `a\ud800b\u0000`, 1)))
	require.NoError(t, err)
	assert.Equal(t, "a\ufffdb\x00", c.Prompt)
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	require.NoError(t, os.Mkdir(at("d"), 0o700))
	require.NoError(t, os.WriteFile(at("f"), nil, 0o600))
	require.NoError(t, os.Symlink("none", at("dangling")))
	require.NoError(t, unix.Mkfifo(at("fifo"), 0o600))
	for _, c := range []struct{ cwd, db, want string }{
		{dir, at("new.db"), ""},
		{at("d"), at("f"), ""},
		{dir, at("dangling"), ""},
		{at("no\nne"), at("f"), "the config's cwd needs a directory that is not there: " + at("no ne")},
		{at("f"), at("f"), "the config's cwd needs a directory, and this is not one: " + at("f")},
		{at("f", "x"), at("f"), "the config's cwd needs a directory that cannot be read: stat " + at("f", "x") + ": not a directory"},
		{dir, at("d"), "the config's dbPath must be a file, and is a directory: " + at("d")},
		{dir, at("none", "n.db"), "the config's dbPath needs a directory that is not there: " + at("none")},
		{dir, at("f", "n.db"), "the config's dbPath needs a directory, and this is not one: " + at("f")},
		{dir, at("fifo"), "the config's dbPath must be a regular file: " + at("fifo")},
	} {
		err := (&config.Config{Cwd: c.cwd, DBPath: c.db}).Check()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err, c.db)
		assert.Contains(t, problem(t, err).Error(), c.want)
	}
}

func TestCheckRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	require.NoError(t, os.Mkdir(locked, 0o500))
	file := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o400))
	for _, c := range []struct{ cwd, db, want string }{
		{dir, locked + "/n.db", "the config's dbPath needs a directory that this user may write to: " + locked + ": permission denied"},
		{dir, file, "the config's dbPath must be a file that this user may write: " + file + ": permission denied"},
	} {
		assert.Equal(t, c.want, problem(t, (&config.Config{Cwd: c.cwd, DBPath: c.db}).Check()).Error())
	}
}
