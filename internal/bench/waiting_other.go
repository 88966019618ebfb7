//go:build !linux

package main

const (
	canSeeWaiting = false
	notWaiting    = ""
)

func waitState(int) string { return notWaiting }
