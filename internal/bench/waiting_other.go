//go:build !linux

package main

import (
	"errors"
	"time"
)

const (
	canSeeWaiting = false
	notWaiting    = ""
)

func waitState(int) string { return notWaiting }

func cpuTime(int) (time.Duration, error) { return 0, errors.New("this system does not show it") }
