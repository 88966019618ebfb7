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
	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/gate"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/machine/socket"
)

const (
	maxToken     = 4 << 10
	leastToken   = 16
	maxHeader    = 64 << 10
	maxBody      = inbox.MaxLine + 1<<20 // an entry and its envelope
	readPatience = time.Minute
	idlePatience = 10 * time.Minute
	endPatience  = 5 * time.Second
)

type serveFlags struct {
	listen, tokenFile, role string
	inboxes                 []string
	all                     []namedInbox // inboxes, parsed
}

func serveVerb(run cli.Verbs) cli.Verb {
	return cli.Verb{
		Name:  "serve",
		Short: "serve programs over HTTP, with a token",
		Long: `Serve the tools of producers or operators over HTTP (streamable), each inbox under
the path /NAME. The address is one of this machine alone, or a socket in a folder;
port 0 takes a free one. Once it listens it prints its URLs, one a line.

Each request needs the header Authorization: Bearer TOKEN, with the first line of
--token-file, which nobody else may be able to read. The tools of agents are not
served: an agent is known by its process.

Exit status: 128+n signal n ended it; 1 it cannot serve, with a sentence on stderr.`,
		Example: `heartbeat mcp serve --listen 127.0.0.1:8080 --token-file token --inbox work=work/inbox.jsonl
heartbeat mcp serve --listen unix:/run/heartbeat/mcp.sock --token-file token --role operator --inbox work=work/inbox.jsonl`,
		Build: func(f *pflag.FlagSet) cli.Action {
			o := &serveFlags{}
			f.StringVar(&o.listen, "listen", "127.0.0.1:0", "where to listen: `HOST:PORT` of this machine alone, or unix:PATH")
			f.StringVar(&o.tokenFile, "token-file", "", "the `file` whose first line every request has to bring")
			f.StringArrayVar(&o.inboxes, "inbox", nil, "an inbox to serve, as `NAME=PATH`; may be repeated")
			addRole(f, &o.role, producer, producer, operator)
			return func(args []string, s cli.Streams) error {
				err := cli.NoArgs(args)
				switch {
				case err != nil:
				case o.tokenFile == "":
					err = errors.New("--token-file is needed: without a token every user of this machine could send")
				case len(o.inboxes) == 0:
					err = errors.New("--inbox NAME=PATH is needed")
				default:
					o.all, err = parseInboxes(o.inboxes)
				}
				if err != nil {
					return cli.Usage(err)
				}
				return serve(o, run, s)
			}
		},
	}
}

func serve(o *serveFlags, run cli.Verbs, s cli.Streams) error {
	taken := signals.Catch()
	defer taken.Stop()
	token, err := readToken(o.tokenFile)
	if err != nil {
		return err
	}
	routes, err := routesOf(o, run)
	if err != nil {
		return err
	}
	listener, hosts, base, err := listen(o.listen)
	if err != nil {
		return err
	}
	handler := gate.Gate{Hosts: hosts, Token: token}.Guard(routes)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readPatience, IdleTimeout: idlePatience, MaxHeaderBytes: maxHeader}
	for _, one := range o.all {
		if _, err := fmt.Fprintf(s.Out, "%s/%s\n", base, one.name); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", o.listen, err)
	case <-taken.First():
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // streams stay open for as long as a client listens
	}
	signal, _ := taken.Signal()
	return cli.Silent(cli.EndedBy{Signal: signal}.Status())
}

func routesOf(o *serveFlags, run cli.Verbs) (*http.ServeMux, error) {
	routes := http.NewServeMux()
	for _, one := range o.all {
		box, err := openInbox(one.path, o.role)
		if err != nil {
			return nil, fmt.Errorf("--inbox %s: %w", one.name, err)
		}
		m := (&server{box: box, role: o.role, run: run}).build()
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m },
			&sdk.StreamableHTTPOptions{SessionTimeout: idlePatience, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody})
		routes.Handle("/"+one.name, handler)
	}
	return routes, nil
}

// listen listens on this machine alone. hosts is nil for a socket.
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

// listenUnix makes a socket to which only its owner may connect. It replaces one on which nobody listens.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("--listen unix:%s: another process already listens there", path)
	}
	l, err := socket.Listen(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	l.SetUnlinkOnClose(true)
	return l, nil
}

// readToken reads the first line of a file that nobody else may read.
func readToken(path string) (string, error) {
	text, err := disk.ReadFile(path, maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: make it first, as in `(umask 077; openssl rand -hex 32 > token)`", err)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--token-file %s: others may read or change it (its mode is %04o): chmod 600", path, info.Mode().Perm())
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	token := strings.TrimSpace(string(line))
	if len(token) < leastToken || strings.ContainsAny(token, " \t") {
		return "", fmt.Errorf("--token-file %s: its first line needs at least %d characters, without spaces: `openssl rand -hex 32` makes a good one", path, leastToken)
	}
	return token, nil
}
