package hosting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/notify"
	recovery "heartbeat/recover"
)

// exitConfig is the exit status for a configuration that cannot be used: EX_CONFIG of
// sysexits(3).
const exitConfig = 78

// configTimeout is how long a config may take to arrive.
const configTimeout = time.Minute

// order is a session that is to be hosted.
type order struct {
	flags  *verbs.Hosting
	config *config.Config
	text   []byte // the config as it came
}

// readOrder reads and checks the config. An error is a [*config.Problem]; the order
// beside it has what is known of the session.
func readOrder(h *verbs.Hosting, stdin *os.File) (*order, error) {
	o := &order{flags: h, config: &config.Config{}}
	if err := absolute(h); err != nil {
		return o, err
	}
	text, err := readConfig(h.Config, stdin)
	if err != nil {
		return o, err
	}
	o.text = text
	if o.config, err = config.Parse(text); err != nil {
		return o, err
	}
	return o, o.config.Check()
}

func readConfig(path string, stdin *os.File) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), configTimeout)
	defer cancel()
	if path == "-" {
		if cli.IsTerminal(stdin) {
			return nil, cli.Usage(errors.New("no configuration: give it on stdin, or name a file with --config"))
		}
		return config.Read(ctx, stdin)
	}
	text, err := disk.ReadGiven(path, config.MaxSize)
	if err != nil {
		return nil, &config.Problem{Reason: fmt.Sprintf("cannot be read: %v", err)}
	}
	return text, nil
}

// host hosts the session here, until its end. started is called once it is up. The
// error says why it never was: a [*notBegun] if the session has reported that itself,
// and otherwise its failure is kept for the guild.
func (o *order) host(started func(session.Up)) error {
	up := false
	options, err := o.options(func(u session.Up) {
		up = true
		started(u)
	})
	var outcome session.Outcome
	if err == nil {
		outcome, err = session.Run(options)
	}
	switch {
	case err != nil:
		return errors.Join(err, o.reportFailure(err))
	case !up:
		return &notBegun{outcome.Decision}
	}
	return nil
}

// notBegun says how a session ended that was hosted and never up.
type notBegun struct{ session.Decision }

func (n *notBegun) Error() string {
	if n.Decision.Error == "" {
		return "the session has ended before its client was started: " + string(n.State)
	}
	return n.Decision.Error
}

func (o *order) options(started func(session.Up)) (session.Options, error) {
	h := o.flags
	hook, err := cli.Beside("heartbeat-stop")
	if err != nil {
		return session.Options{}, err
	}
	meter, err := cli.Beside(settings.MeterName)
	if err != nil {
		meter = "" // no dollars are known then
	}
	return session.Options{
		Config: o.config, Claude: h.Claude, Hook: hook, Meter: meter, Inbox: h.Inbox, Resume: h.Resume, PTY: h.PTY,
		Policy: recovery.Policy(h.Orphan.Policy), MaxAttempts: h.Orphan.MaxAttempts, Limits: h.Limits.Within(o.config.Limits),
		Grace: time.Duration(h.Grace), Timeout: time.Duration(h.Timeout),
		Notify: notify.Options{Command: h.Notify.Command, Drained: h.Notify.Drained, Stall: time.Duration(h.Stall)},
		Stall:  time.Duration(h.Stall), StallAction: session.StallAction(h.StallAction),
		MemoryMax: int64(h.MemoryMax), SpoolMax: int64(h.SpoolMax),
		Started: started,
	}, nil
}

// absolute makes the paths in the flags absolute: the session's working directory is
// another.
func absolute(h *verbs.Hosting) error {
	for _, path := range []*string{&h.Inbox, &h.Claude} {
		if *path == "" || path == &h.Claude && filepath.Base(*path) == *path {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find the path of %s: %w", *path, err)
		}
		*path = abs
	}
	return nil
}

// reportFailure keeps a record that the session failed, as a dead letter, if it is
// known whose it is: a session that is hosted already, or was, has a record of its own.
func (o *order) reportFailure(why error) error {
	c := o.config
	var used *session.UsedError
	if c.SessionID == "" || c.DBPath == "" || errors.As(why, &used) {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(c.DBPath)); err != nil {
		return nil // there is no place for it
	}
	f, err := folder.At(c.DBPath, c.SessionID)
	if err != nil {
		return nil
	}
	if there, err := f.Exists(); err != nil || there {
		return err
	}
	box := deadletter.Beside(c.DBPath)
	if there, err := disk.Exists(box.Path(deadletter.Record, c.SessionID)); err != nil || there {
		return err
	}
	record := &guild.Record{SessionID: c.SessionID, Status: guild.Failed, ExitCode: 1, Error: why.Error(), Extra: c.Extra}
	if err := box.PutRecord(record); err != nil {
		return fmt.Errorf("keep the report of it for the guild: %w", err)
	}
	return o.deliver(box)
}

// deliver sends the report if the guild takes it at once. Otherwise it waits to be
// drained.
func (o *order) deliver(box deadletter.Box) error {
	client, err := guild.New(guild.Options{URL: o.config.GuildToolURL, SessionID: o.config.SessionID, Once: true, RequestTimeout: 5 * time.Second})
	if err != nil { // the URL may be what is wrong with the config
		return nil
	}
	_, _ = box.Deliver(context.Background(), client, deadletter.Record, o.config.SessionID)
	return nil
}

// refusal is the JSON line that says why a session is not hosted.
type refusal struct {
	Error string `json:"error"`
	Path  string `json:"path,omitempty"`
	// SessionID is set where it is known.
	SessionID string `json:"sessionId,omitempty"`
	// Config says that the configuration cannot be used, or not here.
	Config bool `json:"-"`
}

func (o *order) refusal(err error) refusal {
	r := refusal{Error: err.Error(), SessionID: o.config.SessionID}
	var p *config.Problem
	var n *notBegun
	if errors.As(err, &p) {
		r.Path = p.Path
	}
	r.Config = p != nil || errors.As(err, &n)
	return r
}

// print prints the line, and returns what ends the command.
func (r refusal) print(w io.Writer) error {
	if err := cli.PrintJSON(w, r); err != nil {
		return err
	}
	if r.Config {
		return cli.Told(exitConfig)
	}
	return cli.Told(cli.ExitError)
}
