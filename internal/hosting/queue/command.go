package queue

import (
	"slices"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/supervise/client"
)

// Command is the command of the next round's client: the arguments given, with the settings that wire the hook and with a session that is known
// beforehand, if the arguments leave that open. resume is the session to go on with, in
// place of any that the arguments name; "" for none. It replaces the settings of an
// earlier round.
func (q *Queue) Command(args []string, resume string) ([]string, error) {
	start, err := machine.RandomName()
	if err != nil {
		return nil, err
	}
	s := client.Session{Env: q.o.Env, Dir: q.o.Cwd, Hook: q.o.Hook, Private: q.o.Dir, Resume: resume, Checks: q.o.Settings.Checks.Longest()}
	s.Command, s.Limits = slices.Concat([]string{claude.Command}, args), q.o.Settings.Limits
	s.Args = append([]string{
		"--inbox", q.box.Path(), "--launched", "--start", start, "--background-timeout", q.o.Background.String(),
	}, cli.HookArguments(q.o.Settings)...)
	command, session, off, err := client.Claude(s, true)
	if err != nil {
		return nil, err
	}
	q.hooksOff = off
	q.round = round{start: start, session: session, hooks: off == nil}
	return command, nil
}

// Session is the session of the round that [Queue.Command] was called for, "" if only the
// client will know.
func (q *Queue) Session() string { return q.round.session }

// Environ is the environment of the session's client.
func (q *Queue) Environ(environ []string) []string {
	return client.Of(claude.Command, []string{claude.Command}).Environ(environ, q.box.Path(), q.o.Background)
}
