package main

import (
	"os"
	"path/filepath"
	"strings"
)

func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // unknown without it
	for line := range strings.Lines(string(info)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return known(value)
		}
	}
	return known("")
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // unknown without it
	first, _, _ := strings.Cut(string(text), " ")
	return known(first)
}

// fileSystem is the type of the mount that dir is in: the one with the longest
// name, and the last of several (proc(5), mountinfo).
func fileSystem(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // unknown without it
	longest, kind := 0, ""
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(source) == 0 {
			continue
		}
		point := fields[4]
		if inside(dir, point) && len(point) >= longest {
			longest, kind = len(point), source[0]
		}
	}
	return known(kind)
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
