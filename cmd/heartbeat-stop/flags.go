package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

const inboxVariable = "HEARTBEAT_INBOX"

var errNoInbox = errors.New("no inbox: name it with --inbox PATH or in " + inboxVariable)

func newFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // errors get a sentence, not the whole help
	return f
}

func addInbox(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "inbox", os.Getenv(inboxVariable), "path of the JSONL inbox (also "+inboxVariable+")")
	f.Lookup("inbox").DefValue = ""
}

func openInbox(path string, lockWait time.Duration) (*inbox.Inbox, error) {
	if path == "" {
		return nil, errNoInbox
	}
	return inbox.Open(path, inbox.Options{LockWait: lockWait})
}

// span is a flag of whole or broken seconds, or a Go duration.
type span time.Duration

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, numErr := strconv.ParseFloat(text, 64); numErr == nil && math.Abs(seconds) < math.MaxInt64/1e9 {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return errors.New("it takes seconds or a duration, such as 300, 0.5 or 5m")
	}
	*s = span(d)
	return nil
}

func (s *span) String() string { return time.Duration(*s).String() }
func (s *span) Type() string   { return "duration" }

// choice is a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) Set(text string) error {
	for _, a := range c.allowed {
		if a == text {
			*c.value = text
			return nil
		}
	}
	return fmt.Errorf("it is one of %s", strings.Join(c.allowed, ", "))
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return strings.Join(c.allowed, "|") }

// orphanFlags are the settings of recovery, shared by the hook and recover.
type orphanFlags struct {
	policy      string
	maxAttempts int
}

func (o *orphanFlags) add(f *pflag.FlagSet) {
	o.policy = string(recovery.DeadLetter)
	policies := []string{string(recovery.DeadLetter), string(recovery.Retry), string(recovery.Drop)}
	f.Var(choice{&o.policy, policies}, "on-orphan", "what becomes of an entry whose session ended without answering it")
	f.IntVar(&o.maxAttempts, "max-attempts", recovery.DefaultMaxAttempts, "deliveries of one entry before retry gives up on it")
}

func (o *orphanFlags) check() error {
	if o.maxAttempts < 1 {
		return fmt.Errorf("--max-attempts is %d: it must be 1 or more", o.maxAttempts)
	}
	return nil
}

func (o *orphanFlags) options() recovery.Options {
	return recovery.Options{Policy: recovery.Policy(o.policy), MaxAttempts: o.maxAttempts}
}
