package hosting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/session"
)

const (
	configTimeout = time.Minute     // how long a config may take to arrive
	upTimeout     = 2 * time.Minute // how long a session may take to start
	// hostVerb is the hidden verb of the process that hosts a session. The session's ID follows it
	// for people who read a list of processes.
	hostVerb = "__host"
)

// read reads and checks the config. After a [*config.Problem] the order has the config's valid members.
func (o *order) read(stdin *os.File) (err error) {
	for _, path := range []*string{&o.Inbox, &o.Claude} { // the session has another working directory
		if *path == "" || path == &o.Claude && filepath.Base(*path) == *path {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find the path of %s: %w", *path, err)
		}
		*path = abs
	}
	text, err := readConfig(o.file, stdin, configTimeout)
	if err != nil {
		return err
	}
	if o.Config, err = config.Parse(text); err != nil {
		return err
	}
	o.Limits = o.Limits.Within(o.Config.Limits)
	return o.Config.Check()
}

func readConfig(path string, stdin *os.File, patience time.Duration) ([]byte, error) {
	if path != "-" {
		text, err := disk.ReadGiven(path, config.MaxSize)
		if err != nil {
			return nil, &config.Problem{Reason: fmt.Sprintf("cannot be read: %v", err)}
		}
		return text, nil
	}
	if cli.IsTerminal(stdin) {
		return nil, cli.Usage(errors.New("no configuration: give it on stdin, or name a file with --config"))
	}
	var text []byte
	read := make(chan error, 1)
	go func() {
		var err error
		text, err = io.ReadAll(io.LimitReader(stdin, config.MaxSize+1))
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			return nil, fmt.Errorf("read the config: %w", err)
		}
		return text, nil
	case <-time.After(patience):
		return nil, &config.Problem{Reason: "on stdin did not end in time: write one JSON object and close it"}
	}
}

// host hosts the session in this process until its end, and calls started once it is up. The error is why
// the session never was up, a [*refusal] if the session has reported that itself.
func (o *order) host(started func(session.Up)) (err error) {
	if o.Hook, err = cli.Beside("heartbeat-stop"); err != nil {
		return err
	}
	up := false
	o.Started = func(u session.Up) {
		up = true
		started(u)
	}
	outcome, err := session.Run(o.Options)
	if err != nil || up {
		return err
	}
	why := cmp.Or(outcome.Error, "the session has ended before its client was started: "+string(outcome.State))
	status := cli.ExitPerson
	if session.Passes(outcome.Broken) {
		status = cli.ExitLater
	}
	return &refusal{Why: why, SessionID: o.Config.SessionID, Status: status}
}

// keepFailure reports the failure to the guild, or stores the report if the guild does not take it at once. It
// does nothing if the session's ID or database is unknown, if the session is or was hosted (it has its own
// report), or if it can be started later, which callers of the babysitter's interface never do.
func (o *order) keepFailure(why error) error {
	c := o.Config
	if c.SessionID == "" || c.DBPath == "" || errors.Is(why, session.ErrUsed) || errors.As(why, new(*refusal)) || session.Passes(why) && !o.seed {
		return nil
	}
	f, err := folder.At(c.DBPath, c.SessionID)
	if _, placeErr := os.Stat(filepath.Dir(c.DBPath)); err != nil || placeErr != nil {
		return nil // there is no place for the record
	}
	ctx := context.Background()
	box := guild.OutboxBeside(f.DB)
	defer box.Close()
	hosted, err := f.Exists()
	if _, decided, decidedErr := box.Report(ctx, f.ID); err != nil || decidedErr != nil || hosted || decided {
		return errors.Join(err, decidedErr)
	}
	record := &guild.Record{Summary: folder.Summary{Status: folder.Failed, Error: why.Error()}, SessionID: c.SessionID, ExitCode: 1, Extra: c.Extra}
	client, err := guild.New(guild.Options{URL: c.GuildToolURL, SessionID: c.SessionID, Once: true, RequestTimeout: 5 * time.Second})
	if err == nil && box.SendUnkept(ctx, client, record) == nil {
		return nil
	} // the URL itself may be wrong
	if err = folder.MakeRoot(f.DB); err == nil {
		_, _, err = box.Decide(ctx, record, c.GuildToolURL, 0, nil)
	}
	if err == nil {
		err = box.Publish(ctx, f.ID)
	}
	if err != nil {
		err = fmt.Errorf("keep the report of it for the guild: %w", err)
	}
	return err
}

// refusal is why a session is not hosted, as a line of JSON.
type refusal struct {
	Why       string `json:"error"`
	Path      string `json:"path,omitempty"`
	SessionID string `json:"sessionId,omitempty"` // "" if unknown
	Status    int    `json:"status,omitempty"`    // the command's exit status, which is not printed
}

func (r *refusal) Error() string { return r.Why }

// reportRefusal returns the refusal, after it was reported to the guild, or with why it could not be.
func (o *order) reportRefusal(err error) *refusal {
	r := o.refusal(err)
	if unkept := o.keepFailure(err); unkept != nil {
		r.Why += "; the guild was not told: " + unkept.Error()
	}
	return r
}

func (o *order) refusal(err error) *refusal {
	if reported, is := errors.AsType[*refusal](err); is {
		return reported
	}
	r := &refusal{Why: err.Error(), SessionID: o.Config.SessionID, Status: cli.ExitError}
	if p, is := errors.AsType[*config.Problem](err); is {
		r.Path, r.Status = p.Path, cli.ExitPerson
	}
	if session.Passes(err) {
		r.Status = cli.ExitLater
	}
	return r
}

// report is what the hosting process reports of its start.
type report struct {
	Up      *session.Up `json:"up,omitempty"`
	Refusal *refusal    `json:"refusal,omitempty"`
}

// detach starts the process that hosts the session and returns once the session is up.
func (o *order) detach() (*session.Up, error) {
	o.Detached = true
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this command's own path: %w", err)
	}
	host := exec.Command(self, hostVerb, o.Config.SessionID)
	host.Args[0] = command
	host.Dir, host.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	stdin, err := host.StdinPipe()
	out, outErr := host.StdoutPipe()
	if err = errors.Join(err, outErr); err == nil {
		err = host.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the session's host: %w", err)
	}
	defer func() { _ = out.Close() }() // the report was read
	go func() {
		defer func() { _ = stdin.Close() }() // the host reports options that are not complete
		_ = cli.PrintJSON(stdin, o.Options)
	}()
	r, err := awaitReport(out.(*os.File))
	switch {
	case err != nil:
		return nil, giveUp(host, err, filepath.Join(o.Config.LogDir, o.Config.SessionID+".log"))
	case r.Refusal != nil:
		return nil, r.Refusal
	}
	return r.Up, nil
}

func awaitReport(pipe *os.File) (r report, err error) {
	if err := pipe.SetReadDeadline(time.Now().Add(upTimeout)); err != nil {
		return r, err
	}
	switch err = json.NewDecoder(io.LimitReader(pipe, 1<<20)).Decode(&r); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("it was not up within %v", upTimeout)
	case errors.Is(err, io.EOF):
		err = errors.New("it ended before it was up")
	}
	return r, err
}

// giveUp ends a host that is not up, first by SIGTERM, so that the host can clean up.
func giveUp(host *exec.Cmd, why error, log string) error {
	gone := make(chan error, 1)
	go func() { gone <- host.Wait() }()
	_ = host.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		_ = host.Process.Kill()
		<-gone
	}
	return fmt.Errorf("the session's host, process %d: %w: %s may say more", host.Process.Pid, why, log)
}

// serveHost runs the process that hosts a session, whose options it reads from stdin.
func serveHost(s cli.Streams) int {
	up, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 0) // the log replaces stdout
	if err != nil {
		s.Complain(fmt.Errorf("start the session's host: %w", err))
		return cli.ExitError
	}
	pipe := os.NewFile(uintptr(up), "up")
	o := &order{}
	if err := json.NewDecoder(s.In).Decode(&o.Options); err != nil || o.Config == nil { // no starter, or typed by a person
		s.Complain(fmt.Errorf("%s is for %s start alone, which gives it a session's options on stdin: %v", hostVerb, command, err))
		return cli.ExitError
	}
	if err := o.host(func(up session.Up) { sendReport(pipe, report{Up: &up}) }); err != nil {
		sendReport(pipe, report{Refusal: o.reportRefusal(err)})
		return cli.ExitError
	}
	return cli.ExitOK
}

// sendReport reports to the process that started this one, which may be gone.
func sendReport(pipe *os.File, r report) {
	_ = cli.PrintJSON(pipe, r)
	_ = pipe.Close()
}
