package main

import (
	"fmt"
	"os"
)

const maxBinary = 8_000_000

func measureSize(b *bench) (table, error) {
	info, err := os.Stat(b.programs.hook)
	if err != nil {
		return table{}, err
	}
	t := table{
		title:  "Size of the binary",
		how:    "`CGO_ENABLED=0 go build -ldflags '-s -w' ./cmd/heartbeat-stop`",
		header: []string{"", "size"},
		result: fmt.Sprintf("Target: under %s: %s.", megabytes(maxBinary), met(info.Size() < maxBinary)),
	}
	t.add("heartbeat-stop", megabytes(info.Size()))
	return t, nil
}
