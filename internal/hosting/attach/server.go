package attach

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/socket"
)

// Backend is the session that a server makes reachable. Its methods are called from many goroutines.
type Backend interface {
	// Status returns a value to encode as JSON. It must not block.
	Status() any
	// Cancel begins to end the session, and does not wait for the end.
	Cancel(ctx context.Context, e End) error
	// Send appends an entry to the session's inbox. The error matches [ErrEnded] if the session takes no more entries.
	Send(ctx context.Context, m inbox.Message) (inbox.Receipt, error)
}

// Options are a server's limits. Zero values mean the defaults.
type Options struct {
	// Connections is how many there may be at once, 16 by default, which leaves descriptors for the session.
	Connections int
	// Patience is how long a peer may take for its request, 30 s by default, and three times that to read the answer.
	Patience time.Duration
	Log      func(format string, args ...any) // gets a sentence about each problem; nil drops it
}

// Server makes one session reachable.
type Server struct {
	Options
	backend Backend
	path    string
	http    *http.Server
	slots   chan struct{} // one for each connection
}

// Serve makes the session reachable through the socket in the folder. The caller must hold the folder's
// lock, so that no other host serves the session.
func Serve(folder string, b Backend, o Options) (*Server, error) {
	listener, err := socket.Listen(folder, SocketName)
	if err != nil {
		return nil, err
	}
	o.Connections, o.Patience = cmp.Or(o.Connections, 16), cmp.Or(o.Patience, 30*time.Second)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	s := &Server{Options: o, backend: b, path: filepath.Join(folder, SocketName), slots: make(chan struct{}, o.Connections)}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /status", s.answering(func(*http.Request) (any, error) { return b.Status(), nil }))
	routes.HandleFunc("POST /cancel", s.answering(s.cancel))
	routes.HandleFunc("POST /stop", s.answering(s.cancel))
	routes.HandleFunc("POST /send", s.answering(s.send))
	s.http = &http.Server{
		Handler: ownersAlone(routes), ReadTimeout: o.Patience, WriteTimeout: 3 * o.Patience, ErrorLog: log.New(s, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) },
		ConnState:   s.count,
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() { _ = s.http.Serve(listener) }() // always ends with http.ErrServerClosed after Close
	return s, nil
}

// count bounds the connections: the server calls it before it accepts another one.
func (s *Server) count(_ net.Conn, is http.ConnState) {
	switch is {
	case http.StateNew:
		s.slots <- struct{}{}
	case http.StateClosed:
		<-s.slots
	}
}

// Write logs a line of the HTTP server.
func (s *Server) Write(line []byte) (int, error) {
	s.Log("the session's socket: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

// Close removes the socket and accepts no more connections. Open requests have grace to be answered.
func (s *Server) Close(grace time.Duration) error {
	err := disk.Remove(s.path)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // they are too late
	}
	return err
}

// connection is the context key of a request's connection.
type connection struct{}

// ownersAlone refuses users other than the session's own and root. The socket's mode refuses them too,
// unless it or the folder's was changed.
func ownersAlone(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := socket.PeerOf(r.Context().Value(connection{}).(*net.UnixConn))
		if err == nil {
			err = peer.CheckUser()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) answering(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		value, err := answer(r)
		if err != nil {
			status := http.StatusBadRequest
			if errors.Is(err, ErrEnded) {
				status = http.StatusGone
			}
			http.Error(w, err.Error(), status)
			return
		}
		_ = json.NewEncoder(w).Encode(value) // on an error the peer is gone
	}
}

func (s *Server) cancel(r *http.Request) (any, error) {
	most, err := duration(r, "most", 0)
	grace, err2 := duration(r, "grace", -1)
	if err = errors.Join(err, err2); err == nil {
		err = s.backend.Cancel(r.Context(), End{Grace: grace, Warm: r.URL.Path == "/stop", Most: most})
	}
	return struct{}{}, err
}

// duration returns a parameter of a request, or otherwise without one.
func duration(r *http.Request, name string, otherwise time.Duration) (time.Duration, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s %q: it takes a duration, such as 10s", name, text)
	}
	return d, nil
}

func (s *Server) send(r *http.Request) (any, error) {
	var e entry
	err := json.NewDecoder(r.Body).Decode(&e)
	switch {
	case errors.As(err, new(*http.MaxBytesError)) || len(e.Text) > MaxText:
		return nil, fmt.Errorf("a text of more than %d bytes is not taken here: append it to the inbox", MaxText)
	case err != nil:
		return nil, fmt.Errorf("the entry is not one JSON object: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Patience)
	defer cancel()
	return s.backend.Send(ctx, inbox.Message{ID: e.ID, Text: e.Text})
}
