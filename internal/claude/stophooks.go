package claude

import (
	"bytes"
	"slices"
	"strings"

	"heartbeat/internal/flat"
)

// StopHooks are the Stop hooks that are wired besides those of heartbeat. They run side by
// side with it, and each of them may have the turn go on.
type StopHooks struct {
	// Commands are the command lines of those that run as processes which the client waits
	// for, Background of those that it does not wait for.
	Commands, Background []string
	// Servers are the addresses of those that are asked over HTTP. What they said is in the
	// transcript, whatever it was.
	Servers []string
	// Judges says that some are asked of a model: they have no process, and nothing shows
	// that they approve.
	Judges bool
	// Plugins are the names of plugins that are switched on, which bring hooks of their own.
	Plugins []string
}

// Any reports whether the end of a turn is in anybody else's hands.
func (s *StopHooks) Any() bool { return s.Judges || len(s.Commands) > 0 || len(s.Servers) > 0 }

// Read adds what a settings file, or a file of a plugin in the directory root, wires.
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

// ReadSummary adds what ran at an earlier Stop of the session, as the last of the client's
// summaries in a part of its transcript says. Skills and programs bring hooks that no
// settings file has.
func (s *StopHooks) ReadSummary(part []byte) {
	mark, line := []byte(`"subtype":"stop_hook_summary"`), []byte(nil)
	for at := 0; ; at += len(mark) {
		next := bytes.Index(part[at:], mark)
		if next < 0 {
			break
		}
		at += next
		line, _, _ = bytes.Cut(part[bytes.LastIndexByte(part[:at], '\n')+1:], []byte{'\n'})
	}
	if bytes.Contains(line, []byte(`"hookCount":1,`)) {
		return // the caller itself, as at most turns
	}
	if l := flat.Begun(line); isSummary(l) {
		s.addRan(l)
	}
}

func (s *StopHooks) addRan(summary *flat.Members) {
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

// Without takes a command out by what its process was started with: it is the caller's own,
// in another program's clothes.
func (s *StopHooks) Without(arguments string) {
	s.Commands = slices.DeleteFunc(s.Commands, func(command string) bool { return runs(arguments, command) })
}

// InBackground reports whether a process was started for a hook that the client does not
// wait for.
func (s *StopHooks) InBackground(arguments string) bool {
	return slices.ContainsFunc(s.Background, func(command string) bool { return runs(arguments, command) })
}

// runs reports whether a process with these arguments, separated by blanks, was started for
// a command line: the shell has it as one argument, or has become what it says.
func runs(arguments, command string) bool {
	command = unquote.Replace(strings.TrimSpace(command))
	return command != "" && strings.Contains(unquote.Replace(arguments), command)
}

var unquote = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// IsOwn recognises heartbeat's own hook by its command line, or by the settings that wire
// it: by the name of a program, not of a folder. Several of them at one Stop find out between
// themselves which one acts.
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
