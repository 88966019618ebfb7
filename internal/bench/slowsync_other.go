//go:build !linux

package main

import (
	"errors"
	"time"
)

func slowSyncs(time.Duration) error { return errors.New("-sync: it needs Linux") }
