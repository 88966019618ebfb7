package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
)

// connection is one connection to a server.
type connection struct {
	*Server
	conn *net.UnixConn
}

func (c *connection) close() { _ = c.conn.Close() } // nothing is left to be written

func (c *connection) serve() {
	defer context.AfterFunc(c.ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })()
	if err := c.checkPeer(); err != nil {
		c.refuse(err)
		return
	}
	r, err := c.request()
	if err != nil {
		c.refuse(err)
		return
	}
	if err := c.perform(r); err != nil {
		c.refuse(err)
	}
}

// checkPeer refuses other users than the session's own and root. The socket's mode
// refuses them too, unless it or the folder was opened up.
func (c *connection) checkPeer() error {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return err
	}
	uid := -1
	if e := raw.Control(func(fd uintptr) { uid, err = userOfPeer(int(fd)) }); e != nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("who is asking cannot be found out: %w", err)
	}
	if uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("user %d may not reach this session: it is that of user %d", uid, os.Geteuid())
	}
	return nil
}

// request reads the one line that the peer sends.
func (c *connection) request() (r request, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(c.Patience)); err != nil {
		return r, err
	}
	line, err := readLine(io.LimitReader(c.conn, maxRequest))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r, &lateError{c.Patience}
	case len(line) == maxRequest:
		return r, fmt.Errorf("the request is longer than %d bytes: a text of more than %d bytes goes to the inbox directly", maxRequest, MaxText)
	case err != nil && len(line) == 0:
		return r, errors.New("no request: send one JSON object on a line")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("the request is not one JSON object: %w", err)
	}
	return r, nil
}

// readLine reads up to a newline or the end.
func readLine(r io.Reader) ([]byte, error) {
	var line []byte
	part := make([]byte, 4096)
	for {
		n, err := r.Read(part)
		line = append(line, part[:n]...)
		if end := bytes.IndexByte(line[len(line)-n:], '\n'); end >= 0 {
			return line[:len(line)-n+end], nil
		}
		if err != nil {
			return line, err
		}
	}
}

func (c *connection) perform(r request) error {
	switch r.Op {
	case opAttach:
		return c.stream(max(1, r.From))
	case opStatus:
		return c.answer(struct {
			Status any `json:"status"`
		}{c.backend.Status()})
	case opCancel:
		return c.cancel(r.Grace)
	case opSend:
		return c.send(r)
	}
	return fmt.Errorf("unknown op %q: it is one of %s, %s, %s, %s", r.Op, opAttach, opStatus, opCancel, opSend)
}

func (c *connection) cancel(text string) error {
	grace := time.Duration(-1)
	if text != "" {
		var err error
		if grace, err = time.ParseDuration(text); err != nil || grace < 0 {
			return fmt.Errorf("grace %q: it takes a duration, such as 10s", text)
		}
	}
	if err := c.backend.Cancel(grace); err != nil {
		return err
	}
	return c.answer(struct {
		OK bool `json:"ok"`
	}{true})
}

func (c *connection) send(r request) error {
	if len(r.Text) > MaxText {
		return fmt.Errorf("the text has %d bytes, and %d at most are taken here: append it to the inbox", len(r.Text), MaxText)
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.Patience)
	defer cancel()
	receipt, err := c.backend.Send(ctx, inbox.Message{ID: r.ID, Text: r.Text})
	if err != nil {
		return err
	}
	return c.answer(receipt)
}

// lateError says that a peer did not send its request in time. One that is only slow
// tries again.
type lateError struct{ patience time.Duration }

func (l *lateError) Error() string { return fmt.Sprintf("no request within %v", l.patience) }

func (c *connection) refuse(err error) {
	var late *lateError
	no := refusal{Error: err.Error(), Ended: errors.Is(err, ErrEnded), Busy: errors.As(err, &late)}
	_ = c.answer(no) // the peer is gone, or was told
}

// answer writes v as a line.
func (c *connection) answer(v any) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.Patience)); err != nil {
		return err
	}
	return c.print(v)
}

func (c *connection) print(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// watchPeer calls gone once the peer has closed its end. One that only ended its
// writing, as `echo ... | nc -U` does, still reads.
func (c *connection) watchPeer(ctx context.Context, gone func()) {
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, c.conn); err != nil {
		gone()
		return
	}
	for !c.hungUp() {
		if sleep(ctx, time.Second) != nil {
			return
		}
	}
	gone()
}

func (c *connection) hungUp() (is bool) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(poll, 0)
		is = err == nil && n > 0 && poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return is || err != nil
}
