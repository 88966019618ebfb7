package claude

import (
	"bytes"
	"slices"
	"strings"

	"heartbeat/internal/flat"
)

// StopHooks are the wired Stop hooks except heartbeat's own. They run beside heartbeat's, and each may continue the turn.
type StopHooks struct {
	// Commands are the command lines of hooks for which the client waits, Background of those for which it does not.
	Commands, Background []string
	// Servers are the URLs of HTTP hooks. The transcript shows every decision of theirs.
	Servers []string
	// Judges says that some hooks ask a model. They have no process, and nothing shows that they approve.
	Judges  bool
	Plugins []string // the names of enabled plugins, which have hooks of their own
}

// Any reports whether any of these hooks can continue a turn.
func (s *StopHooks) Any() bool { return s.Judges || len(s.Commands) > 0 || len(s.Servers) > 0 }

// Read adds what a settings file wires, or a file of the plugin in the directory root.
func (s *StopHooks) Read(text []byte, root string) {
	v := flat.Value(text)
	if bytes.Contains(text, []byte(`"Stop"`)) {
		for _, group := range v.Get("hooks", "Stop").Items() {
			for _, hook := range group.Get("hooks").Items() {
				s.add(hook, root)
			}
		}
	}
	if !bytes.Contains(text, []byte(`"enabledPlugins"`)) {
		return
	}
	if plugins, err := flat.Parse([]byte(v.Get("enabledPlugins"))); err == nil {
		plugins.Without(nil, func(name string, is []byte) {
			if string(is) != "false" && !slices.Contains(s.Plugins, name) {
				s.Plugins = append(s.Plugins, name)
			}
		})
	}
}

func (s *StopHooks) add(hook flat.Value, root string) {
	if IsOwn(string(hook)) {
		return
	}
	switch hook.Get("type").Text() {
	case "command", "":
		line := []string{hook.Get("command").Text()}
		for _, arg := range hook.Get("args").Items() {
			line = append(line, arg.Text())
		}
		command := strings.ReplaceAll(strings.Join(line, " "), "${CLAUDE_PLUGIN_ROOT}", root)
		if hook.Get("async") == "true" || hook.Get("asyncRewake") == "true" {
			s.Background = append(s.Background, command)
		} else {
			s.Commands = append(s.Commands, command)
		}
	case "http":
		s.Servers = append(s.Servers, hook.Get("url").Text())
	default:
		s.Judges = true
	}
}

// ReadSummary adds what ran at an earlier Stop of the session, from the last summary in a part of its transcript. Skills
// and programs add hooks that no settings file has.
func (s *StopHooks) ReadSummary(part []byte) {
	at := bytes.LastIndex(part, []byte(`"subtype":"stop_hook_summary"`))
	if at < 0 {
		return
	}
	line, _, _ := bytes.Cut(part[bytes.LastIndexByte(part[:at], '\n')+1:], []byte{'\n'})
	if bytes.Contains(line, []byte(`"hookCount":1,`)) {
		return // only the caller ran, as in most turns
	}
	summary := flat.Begun(line)
	if !isSummary(summary) {
		return
	}
	for _, hook := range summary.Value("hookInfos").Items() {
		command := hook.Get("command").Text()
		switch {
		case IsOwn(string(hook)) || slices.ContainsFunc(slices.Concat(s.Commands, s.Background, s.Servers), func(known string) bool { return strings.HasPrefix(known, command) }):
		case hook.Get("promptText") != "":
			s.Judges = true
		case strings.HasPrefix(command, "http://"), strings.HasPrefix(command, "https://"):
			s.Servers = append(s.Servers, command)
		default:
			s.Commands = append(s.Commands, command)
		}
	}
}

// Without removes the command that a process with these arguments runs: the caller's own hook, wrapped in another program.
func (s *StopHooks) Without(arguments string) {
	s.Commands = slices.DeleteFunc(s.Commands, func(command string) bool { return runs(arguments, command) })
}

// InBackground reports whether a process runs a hook that the client does not wait for.
func (s *StopHooks) InBackground(arguments string) bool {
	return slices.ContainsFunc(s.Background, func(command string) bool { return runs(arguments, command) })
}

// runs reports whether a process with these arguments, joined by blanks, was started for a command line. It is the shell
// with the command line as one argument, or the program that replaced the shell.
func runs(arguments, command string) bool {
	command = unquote.Replace(strings.TrimSpace(command))
	return command != "" && strings.Contains(unquote.Replace(arguments), command)
}

var unquote = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// IsOwn recognises heartbeat's own hook by its command line or the settings that wire it: by a program's name, not a
// folder's. Several of these hooks at one Stop decide by themselves which one acts.
func IsOwn(command string) bool {
	for rest := command; ; {
		_, after, found := strings.Cut(rest, "heartbeat-stop")
		if !found {
			return strings.Contains(command, "/scripts/heartbeat.sh") || strings.Contains(command, "heartbeat __stop")
		}
		if !strings.HasPrefix(after, "/") {
			return true
		}
		rest = after
	}
}
