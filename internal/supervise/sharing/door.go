package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/socket"
	"heartbeat/internal/words"
)

func (s *Server) accept(listener *net.UnixListener) {
	slots := make(chan struct{}, 2*maxWatchers) // one for each connection
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		slots <- struct{}{}
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: it passes
			<-slots
			time.Sleep(pause)
			continue
		}
		pause = 5 * time.Millisecond
		s.mu.Lock()
		if s.closed {
			_ = conn.Close() // nothing was said yet
		} else {
			s.serving.Go(func() {
				defer func() { <-slots }()
				defer conn.Close() // the peer's last frame was sent
				s.serve(conn)
			})
		}
		s.mu.Unlock()
	}
}

func (s *Server) serve(conn *net.UnixConn) {
	w, err := s.welcome(conn)
	if err != nil {
		_ = conn.SetWriteDeadline(time.Now().Add(helloPatience))
		_ = writeFrame(conn, frameBye, []byte(err.Error())) // on an error the peer is gone
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.send(w)
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // ends the reading
	}()
	s.receive(w)
	s.leave(w)
	<-sent
}

// welcome makes a peer a watcher, or returns why it may not be one.
func (s *Server) welcome(conn *net.UnixConn) (*watcher, error) {
	if err := mayAttach(conn); err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(helloPatience))
	kind, text, err := readFrame(conn, maxSent)
	var h hello
	switch {
	case err != nil:
		return nil, fmt.Errorf("the peer sent no hello: %w", err)
	case kind != frameHello || json.Unmarshal(text, &h) != nil:
		return nil, errors.New("what the peer sent is no hello of this protocol")
	case h.Version != version:
		return nil, fmt.Errorf("the launcher is of another release, which speaks version %d of the protocol, and the peer version %d: use its own command", version, h.Version)
	}
	w := &watcher{
		conn: conn, onlyWatches: h.Watch, is: h.size.bounded(),
		changed: make(chan struct{}, 1), over: make(chan struct{}),
	}
	if key := words.Line(h.Key); len(key) <= maxKey {
		w.key = key
	}
	if err := s.join(w, h.Take); err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return w, nil
}

// mayAttach refuses other users and the session itself: an agent that answers its own questions would make them
// pointless. All processes that a session starts stay below this process until they end, daemons included.
func mayAttach(conn *net.UnixConn) error {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return err
	}
	if err := peer.CheckUser(); err != nil {
		return err
	}
	if peer.PID == os.Getpid() { // in a test
		return nil
	}
	parents := map[int]int{}
	for _, p := range machine.List() {
		parents[p.PID] = p.Parent
	}
	if _, known := parents[peer.PID]; !known {
		return errors.New("the process that asks cannot be seen from here, so it may belong to the session, which may not attach to itself")
	}
	for pid, steps := peer.PID, 0; pid > 1 && steps < len(parents); pid, steps = parents[pid], steps+1 {
		if pid == os.Getpid() {
			return errors.New("a process of the session may not attach to it: that is for a person, from another terminal")
		}
	}
	return nil
}

// Dial connects to the launcher that listens at path; launcher is its pid, -1 if unknown. More than
// the launcher may write the file that path comes from, so Dial believes only the process that
// holds the inbox, in a folder of its own user.
func Dial(ctx context.Context, path string, launcher int) (conn *net.UnixConn, err error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the launcher's socket %s has no absolute path", path)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("reach the launcher: %w", err)
		}
	}()
	folder, name := filepath.Dir(path), filepath.Base(path)
	if launcher > 0 { // a service may have its own /tmp
		its := filepath.Join("/proc", strconv.Itoa(launcher), "root", folder)
		if _, err := disk.StatDir(its); err == nil {
			folder = its
		}
	}
	info, err := disk.StatDir(folder)
	if err != nil {
		return nil, err
	}
	if info.Mode&0o077 != 0 {
		return nil, fmt.Errorf("others may reach into %s (mode %04o), and no launcher makes such a folder", folder, info.Mode)
	}
	if conn, err = socket.Dial(ctx, folder, name); err != nil {
		return nil, err
	}
	peer, err := socket.PeerOf(conn)
	switch {
	case err != nil:
	case launcher > 0 && peer.PID != launcher:
		err = fmt.Errorf("process %d listens at %s, and process %d has the inbox: it is not believed", peer.PID, filepath.Join(folder, name), launcher)
	case peer.UID != int(info.UID):
		err = fmt.Errorf("user %d listens at %s, in a folder of user %d: it is not believed", peer.UID, filepath.Join(folder, name), info.UID)
	case os.Geteuid() != 0 && peer.UID != os.Geteuid():
		err = fmt.Errorf("the launcher is user %d, and this is user %d: attach as that user", peer.UID, os.Geteuid())
	default:
		return conn, nil
	}
	return nil, errors.Join(err, conn.Close())
}
