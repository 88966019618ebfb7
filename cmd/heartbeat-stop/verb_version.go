package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
)

type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	// Static is false for a build with cgo, which takes longer to start.
	Static bool `json:"static"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
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

func versionLine() string {
	b := readBuild()
	line := "heartbeat-stop " + b.Version
	if b.Revision != "" {
		line += " " + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			line += "+changes"
		}
	}
	return fmt.Sprintf("%s (%s, %s/%s)", line, b.Go, runtime.GOOS, runtime.GOARCH)
}

func versionVerb() verb {
	return verb{
		name:    "version",
		short:   "show the version and what it was built from",
		long:    "Show the version, the commit it was built from, and the Go release.",
		example: "heartbeat-stop version --json",
		build: func() (*pflag.FlagSet, action) {
			var i inboxFlags
			f := newFlags("version")
			i.add(f)
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				return i.print(s, readBuild(), versionLine())
			}
		},
	}
}
