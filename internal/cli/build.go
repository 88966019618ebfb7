package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"heartbeat/internal/release"
)

// Build is what the running command was built from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	// Static is false for a build with cgo, which takes longer to start.
	Static bool `json:"static"`
}

// ReadBuild reads the build information of the running command.
func ReadBuild() Build {
	b := Build{Version: release.Version(), Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		case "CGO_ENABLED":
			b.Static = s.Value == "0"
		}
	}
	return b
}

// VersionLine is the output of --version.
func VersionLine(command string) string {
	b := ReadBuild()
	line := command + " " + b.Version
	if b.Revision != "" {
		line += " " + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			line += "+changes"
		}
	}
	return fmt.Sprintf("%s (%s, %s/%s)", line, b.Go, runtime.GOOS, runtime.GOARCH)
}
