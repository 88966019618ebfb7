package client

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/stuck"
)

// The ways to wire a session.
const (
	byHook     = "hook"     // a person sits at it, and the settings have the hook
	byLauncher = "launcher" // nobody does
)

// stuckRig is a rig whose model does what it was told last when it is asked about an entry.
type stuckRig struct {
	*rig
	wiring   string
	ctx      context.Context
	reply    chan model.Reply // what is answered about an entry, the next time
	network  *network
	bin      string // where the client is, as a command of its own
	managed  *managed
	attended *Session
	aged     []string // files that were last written an hour ago, whoever looks
	lacks    string
}

func newStuckRig(t *testing.T, wiring string) *stuckRig {
	t.Helper()
	s := &stuckRig{wiring: wiring, ctx: minutes(t), reply: make(chan model.Reply, 1)}
	s.rig = newRigWith(t, func(r model.Request) model.Reply {
		if tag := lastTag(r); strings.HasPrefix(tag, "[e") && len(r.ToolResults) == 0 {
			select {
			case reply := <-s.reply:
				return reply
			default:
				return model.Text(ownReply(tag))
			}
		}
		return model.Text("ready")
	})
	s.network = newNetwork(t, s.Model.URL())
	s.bin = filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.Symlink(s.binary, s.bin))
	s.binary = s.bin
	if wiring == byHook {
		s.install("--on-orphan", "retry")
	}
	return s
}

// begins starts the session.
func (s *stuckRig) begins(flags ...string) {
	s.t.Helper()
	env := []string{NoRetries, "ANTHROPIC_BASE_URL=" + s.network.url()}
	asks := []string{"--permission-mode", "default"}
	if s.wiring == byHook {
		o := s.options(env...)
		o.Args = asks
		s.attended = s.rig.attended(s.ctx, o)
		return
	}
	launch, err := buildLaunch()
	require.NoError(s.t, err)
	args := slices.Concat(s.workOn(), []string{"--on-orphan", "retry", "--drain-timeout", "1s"}, flags, []string{"--", s.bin}, asks, []string{prompt(1)})
	s.managed = &managed{s.start(s.ctx, append(env, "CI=1"), "", launch, args...), s.rig}
}

// meets has the model do so with the first entry.
func (s *stuckRig) meets(reply model.Reply, flags ...string) {
	s.t.Helper()
	s.reply <- reply
	s.add(some(1)...)
	s.begins(flags...)
	s.asked(s.ctx, "[e1]", 1)
}

// ends ends the session, or the launcher.
func (s *stuckRig) ends() {
	s.t.Helper()
	if s.wiring == byHook {
		s.quit(s.ctx, s.attended)
		return
	}
	require.NoError(s.t, s.managed.cmd.Process.Signal(syscall.SIGTERM))
	s.managed.started.wait()
	s.sessionsGone(s.ctx)
}

// again ends what is there, and decides about the entry.
func (s *stuckRig) again() {
	s.t.Helper()
	s.ends()
	s.run("", "recover", "--on-orphan", "retry")
	s.run("", "resume")
}

func (s *stuckRig) look() stuck.Look {
	return stuck.Look{Inbox: s.inbox, Project: s.Project, Scratch: filepath.Join(s.Home, "told"), Verb: func(verb string, args ...string) string {
		cmd := exec.Command(s.heartbeat(), append([]string{verb, "--inbox", s.inbox}, args...)...)
		cmd.Env = s.environ([]string{s.onPath()})
		out, _ := cmd.CombinedOutput() // its status says that something is wrong
		return string(out)
	}}
}

// network is between the client and the model, and can be gone.
type network struct {
	t      *testing.T
	addr   string
	to     http.Handler
	server *http.Server
}

func newNetwork(t *testing.T, model string) *network {
	t.Helper()
	to, err := url.Parse(model)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1 // answers are streamed
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	n := &network{t: t, addr: "127.0.0.1:0", to: proxy}
	n.back()
	t.Cleanup(func() { n.gone() })
	return n
}

func (n *network) url() string { return "http://" + n.addr }

// back has the model be there again.
func (n *network) back() {
	n.t.Helper()
	l, err := net.Listen("tcp", n.addr)
	require.NoError(n.t, err)
	n.addr, n.server = l.Addr().String(), &http.Server{Handler: n.to}
	go func(s *http.Server) { _ = s.Serve(l) }(n.server) // it ends with gone
}

// gone has nobody be reached.
func (n *network) gone() {
	_ = n.server.Close() // whoever is connected notices
}

// ages has files be old: the client writes for a while after it has asked the model.
func (s *stuckRig) ages() {
	s.t.Helper()
	for _, name := range s.aged {
		before := time.Now().Add(-time.Hour)
		require.NoError(s.t, os.Chtimes(name, before, before))
	}
}

// away has the client not be there, as while it is updated.
func (s *stuckRig) away() {
	s.t.Helper()
	require.NoError(s.t, os.Rename(s.bin, s.bin+".new"))
}

func (s *stuckRig) comes() {
	s.t.Helper()
	require.NoError(s.t, os.Rename(s.bin+".new", s.bin))
}

// seen is what there is to see.
func (s *stuckRig) seen() string {
	text := "missing in: " + s.lacks + "\n" + s.look().Verb("status") + s.state()
	if raw, err := os.ReadFile(s.path(".events.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		text += string(raw)
	}
	if s.managed != nil {
		text += s.managed.stdout.String() + s.managed.stderr.String()
	}
	if s.attended != nil {
		text += tail(plain(s.attended.Screen()))
	}
	return text
}
