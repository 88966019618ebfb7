package settings

import (
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/disk"
)

// TakeFlag takes the flag --settings out of the client's arguments, which come without
// the program's name, and returns its value, "" for none. Of several the last counts, as
// it does with the client.
func TakeFlag(args []string) (rest []string, value string) {
	rest = make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		joined, is := strings.CutPrefix(args[i], "--settings=")
		switch {
		case args[i] == "--":
			return append(rest, args[i:]...), value
		case is:
			value = joined
		case args[i] == "--settings" && i+1 < len(args):
			i++
			value = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return rest, value
}

// ReadFlag reads the value of --settings as a client in dir does: a file, or the JSON
// itself.
func ReadFlag(value, dir string) ([]byte, error) {
	switch {
	case value == "":
		return nil, nil
	case strings.HasPrefix(strings.TrimSpace(value), "{"):
		return []byte(value), nil
	case !filepath.IsAbs(value):
		value = filepath.Join(dir, value)
	}
	return disk.ReadGiven(value, MaxFile)
}

// SwitchedOffBy returns the settings file that keeps a client with this environment, in
// this directory, from running hooks, "" for none. The last file that says anything about
// it counts.
func SwitchedOffBy(environ []string, dir, hook string) string {
	for _, f := range slices.Backward(FilesOf(environ, dir)) {
		text, err := disk.ReadFile(f.Path, MaxFile)
		if err != nil {
			continue
		}
		content, err := Look(text, hook)
		if on, set := content.Switches["disableAllHooks"]; err == nil && set {
			if on {
				return f.Path
			}
			return ""
		}
	}
	return ""
}
