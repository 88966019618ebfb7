package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/gate"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/mcp/page"
)

const (
	maxToken     = 4 << 10
	leastToken   = 16
	maxHeader    = 64 << 10
	maxBody      = inbox.MaxLine + 1<<20 // an entry, and what is around it
	readPatience = time.Minute
	idlePatience = 10 * time.Minute
	endPatience  = 5 * time.Second
)

// serve serves programs until a signal ends it.
func serve(o *page.Serve, s cli.Streams) error {
	taken := signals.Take()
	defer taken.Stop()
	token, err := readToken(o.TokenFile)
	if err != nil {
		return err
	}
	routes, names, err := routesOf(o)
	if err != nil {
		return err
	}
	listener, hosts, base, err := listen(o.Listen)
	if err != nil {
		return err
	}
	handler := guarded(gate.Gate{Hosts: hosts, Token: token}, routes)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readPatience, IdleTimeout: idlePatience, MaxHeaderBytes: maxHeader}
	for _, name := range names {
		if _, err := fmt.Fprintf(s.Out, "%s/%s\n", base, name); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", o.Listen, err)
	case <-taken.First():
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // streams stay open for as long as a client listens
	}
	signal, _ := taken.Signal()
	return cli.Told(cli.EndedBy{Signal: signal}.Status())
}

func guarded(g gate.Gate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.Refusal(r); status != 0 {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, why, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// routesOf has each inbox under its name.
func routesOf(o *page.Serve) (routes *http.ServeMux, names []string, err error) {
	all, err := page.Named(o.Inboxes)
	if err != nil {
		return nil, nil, err
	}
	routes = http.NewServeMux()
	for _, one := range all {
		box, err := openInbox(one.Path, o.Role)
		if err != nil {
			return nil, nil, fmt.Errorf("--inbox %s: %w", one.Name, err)
		}
		m := (&server{box: box, role: o.Role, verbs: verbs{inbox: box.Path()}}).build()
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m },
			&sdk.StreamableHTTPOptions{SessionTimeout: idlePatience, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody})
		routes.Handle("/"+one.Name, handler)
		names = append(names, one.Name)
	}
	return routes, names, nil
}

// listen listens on this machine alone.
func listen(where string) (l net.Listener, hosts map[string]bool, base string, err error) {
	if path, is := strings.CutPrefix(where, "unix:"); is {
		l, err = listenUnix(path)
		return l, nil, "unix:" + path + ":", err
	}
	address, err := net.ResolveTCPAddr("tcp", where)
	if err != nil {
		return nil, nil, "", fmt.Errorf("--listen %s: %w", where, err)
	}
	if !address.IP.IsLoopback() {
		return nil, nil, "", fmt.Errorf("--listen %s: only an address of this machine alone is served, such as 127.0.0.1:0: put a proxy with TLS before it for others", where)
	}
	tcp, err := net.ListenTCP("tcp", address)
	if err != nil {
		return nil, nil, "", fmt.Errorf("--listen %s: %w", where, err)
	}
	at := tcp.Addr().(*net.TCPAddr)
	return tcp, gate.Loopback(at.Port), "http://" + at.String(), nil
}

// listenUnix makes a socket that only its owner may connect to. One that nobody listens on
// any more is replaced.
func listenUnix(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--listen: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("--listen unix:%s: there is something else of that name", path)
	default:
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("--listen unix:%s: somebody listens there already", path)
		}
		if err := disk.Remove(path); err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
	}
	// In a folder of its own until only its owner may connect to it.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".heartbeat-mcp-")
	if err != nil {
		return nil, fmt.Errorf("--listen unix:%s: %w", path, err)
	}
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
		err = errors.Join(os.Chmod(made, 0o600), os.Rename(made, path))
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, fmt.Errorf("--listen unix:%s: %w", path, err)
	}
	return &unlinking{l, path}, nil
}

// unlinking removes its socket when it is closed.
type unlinking struct {
	net.Listener
	path string
}

func (u *unlinking) Close() error { return errors.Join(u.Listener.Close(), disk.Remove(u.path)) }

// readToken is the first line of a file that nobody else may read.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--token-file %s: others may read or change it (its mode is %04o): chmod 600", path, info.Mode().Perm())
	}
	text, err := disk.ReadFile(path, maxToken)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	token := strings.TrimSpace(string(line))
	if len(token) < leastToken || strings.ContainsAny(token, " \t") {
		return "", fmt.Errorf("--token-file %s: its first line is to be %d characters at least, without spaces: `openssl rand -hex 32` makes a good one", path, leastToken)
	}
	return token, nil
}
