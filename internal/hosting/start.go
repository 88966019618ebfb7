package hosting

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/verbs"
)

const (
	// hostVerb is the hidden verb of the process that hosts a session. The session's id
	// follows, for people who read a list of processes.
	hostVerb = "__host"
	// upPipe is the descriptor of that process on which it says that the session is up.
	upPipe = 3
	// upTimeout is how long a session may take until it is up.
	upTimeout = 2 * time.Minute
)

// start hosts a session in a process of its own.
func start(h *verbs.Hosting, s cli.Streams) error {
	o, err := readOrder(h, s.In)
	var problem *config.Problem
	switch {
	case err != nil && !errors.As(err, &problem):
		return err
	case err != nil:
		o.keepFailure(err, s)
		return o.refusal(err).print(s.Err)
	case h.Foreground:
		return o.stay(s)
	}
	up, err := o.detach()
	if err != nil {
		var no *notUp
		if errors.As(err, &no) {
			return no.print(s.Err)
		}
		o.keepFailure(err, s)
		return o.refusal(err).print(s.Err)
	}
	return printJSON(s, up)
}

// stay hosts the session in this process.
func (o *order) stay(s cli.Streams) error {
	if err := o.host(func(up session.Up) { _ = printJSON(s, up) }); err != nil {
		return o.refusal(err).print(s.Err)
	}
	return nil
}

// report is what the hosting process says about its start.
type report struct {
	Up      *session.Up `json:"up,omitempty"`
	Refusal *refusal    `json:"refusal,omitempty"`
	Config  bool        `json:"config,omitempty"`
}

// notUp is a refusal that the hosting process has reported to the guild already.
type notUp struct{ refusal }

func (n *notUp) Error() string { return n.refusal.Error }

// detach starts the process that hosts the session, and returns once that is up.
func (o *order) detach() (*session.Up, error) {
	log, err := openLog(o.config)
	if err != nil {
		return nil, err
	}
	defer log.close()
	up, err := o.spawn(log)
	if err != nil {
		log.removeEmpty()
	}
	return up, err
}

func (o *order) spawn(log *logFile) (*session.Up, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this command's own path: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the session's host: %w", err)
	}
	defer func() { _ = out.Close() }() // all was read that is wanted
	host := exec.Command(self, hostVerb, o.config.SessionID)
	host.Args[0] = command
	host.Dir, host.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	host.Stdout, host.Stderr, host.ExtraFiles = log.file, log.file, []*os.File{in}
	stdin, err := host.StdinPipe()
	if err == nil {
		err = host.Start()
	}
	if closed := in.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("start the session's host: %w", err)
	}
	go o.assign(stdin)
	r, err := awaitReport(out)
	if err != nil {
		return nil, giveUp(host, err, log.path)
	}
	return r.outcome()
}

// assign writes what the hosting process gets on its stdin: the flags, as JSON on one
// line, and then the config as it came, which may have 64 MiB.
func (o *order) assign(stdin io.WriteCloser) {
	defer func() { _ = stdin.Close() }() // a host that does not get all of it says so
	if json.NewEncoder(stdin).Encode(o.flags) == nil {
		_, _ = stdin.Write(o.text) // as above
	}
}

// assigned reads what assign has written.
func assigned(stdin io.Reader) (*order, error) {
	o := &order{flags: &verbs.Hosting{}, config: &config.Config{}}
	in := bufio.NewReader(stdin)
	flags, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(flags, o.flags)
	}
	if err != nil {
		return o, fmt.Errorf("%s is for %s start alone: %w", hostVerb, command, err)
	}
	if o.text, err = io.ReadAll(in); err != nil {
		return o, fmt.Errorf("read the config: %w", err)
	}
	o.config, err = config.Parse(o.text)
	return o, err
}

func awaitReport(pipe *os.File) (r report, err error) {
	if err := pipe.SetReadDeadline(time.Now().Add(upTimeout)); err != nil {
		return r, err
	}
	b, err := io.ReadAll(io.LimitReader(pipe, 1<<20))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r, fmt.Errorf("it was not up within %v", upTimeout)
	case err != nil:
		return r, err
	case len(b) == 0:
		return r, errors.New("it ended before it was up")
	}
	return r, json.Unmarshal(b, &r)
}

func (r report) outcome() (*session.Up, error) {
	if r.Refusal != nil {
		r.Refusal.Config = r.Config
		return nil, &notUp{*r.Refusal}
	}
	return r.Up, nil
}

// giveUp ends a host that is not up. It is asked to, so that it cleans up.
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

// serveHost is the process that hosts a session.
func serveHost(s cli.Streams) int {
	unix.CloseOnExec(upPipe)
	pipe := os.NewFile(upPipe, "up")
	o, err := assigned(s.In)
	if o.text == nil { // somebody typed this
		s.Complain(err)
		return cli.ExitError
	}
	if err == nil {
		err = o.host(func(up session.Up) { say(pipe, report{Up: &up}) })
	}
	if err != nil {
		r := o.refusal(err)
		say(pipe, report{Refusal: &r, Config: r.Config})
		return cli.ExitError
	}
	return cli.ExitOK
}

// say tells the process that started this one. That may be gone.
func say(pipe *os.File, r report) {
	b, err := json.Marshal(r)
	if err == nil {
		_, _ = pipe.Write(b)
	}
	_ = pipe.Close()
}
