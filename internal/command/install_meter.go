package command

import (
	"os"
	"path/filepath"
	"slices"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
)

// meter is the status line to wire, nil for none. Without its program all else is wired.
func (o *installFlags) meter(path string, s cli.Streams) *settings.Meter {
	if o.noMeter {
		return nil
	}
	program, err := cli.Beside(settings.MeterName)
	if err != nil {
		s.Note("no dollars will be counted: %v", err)
		return nil
	}
	below, _ := settings.Shown(settings.Below(filesAround(path), path))
	return &settings.Meter{Command: program, Below: below}
}

// filesAround are the settings files of a session whose settings the one at path is among.
func filesAround(path string) []settings.File {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	isProjects := slices.Contains([]string{"settings.json", "settings.local.json"}, filepath.Base(path))
	if above := filepath.Dir(path); isProjects && filepath.Base(above) == ".claude" {
		dir = filepath.Dir(above)
	}
	return settings.FilesOf(os.Environ(), dir)
}

// metered returns the meter that the settings file runs for the inbox now, "" for none, and
// says what is in its way.
func metered(path string, w settings.Wiring, s cli.Streams) string {
	text, err := disk.ReadFile(path, settings.MaxFile)
	if err != nil {
		return "" // uninstall has removed it
	}
	content, err := settings.Look(text, w.Command)
	if err != nil {
		return ""
	}
	line := content.StatusLine
	m := line.Meter(w.Inbox())
	switch {
	case m != nil && w.Meter == nil:
		s.Note("line %d of %s runs heartbeat-meter in a command of your own: take it out by hand", line.Line, path)
	case m == nil && w.Meter != nil && line == nil:
		s.Note("no dollars will be counted: the status line that heartbeat-meter would stand before is too long")
	case m == nil && w.Meter != nil:
		s.Note("no dollars will be counted: heartbeat-meter cannot go before the statusLine at line %d of %s: it is of no type that heartbeat knows, or too long", line.Line, path)
	case m != nil:
		sayHidden(path, w.Inbox(), s)
		return m.Command
	}
	return ""
}

// sayHidden says which file's status line the client runs in place of the one at path.
func sayHidden(path, inbox string, s cli.Streams) {
	files := filesAround(path)
	above := files[len(settings.Below(files, path)):]
	if len(above) > 0 && !above[0].Managed {
		above = above[1:]
	}
	if line, from := settings.Shown(above); line != nil && line.Meter(inbox) == nil {
		s.Note("no dollars will be counted where %s is in force: its statusLine has precedence over the one in %s. Install into that file instead", from.Path, path)
	}
}
