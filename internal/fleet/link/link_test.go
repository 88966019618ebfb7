package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// TestMain keeps the contexts of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "heartbeat-nats" {
		serveHere(os.Args[len(os.Args)-1])
	}
	dir, err := os.MkdirTemp("", "link")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"XDG_CONFIG_HOME": dir, "NATS_URL": "", "NATS_CONTEXT": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// said collects sentences.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) say(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, sentence)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.all, "\n")
}

func connect(t *testing.T, to *Flags, o Options) *Conn {
	t.Helper()
	c, err := Connect(fleet.Context(t), to, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestAConnectionComesBack(t *testing.T) {
	s := fleet.Start(t)
	p := fleet.NewProxy(t, s.Address())
	var told said
	c := connect(t, &Flags{Server: p.URL()}, Options{Say: told.say})
	assert.True(t, c.Connected())

	p.Cut()
	require.Eventually(t, func() bool { return !c.Connected() }, 5*time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return told.text() != "" }, 5*time.Minute, time.Millisecond)
	assert.Regexp(t, `^not connected to nats://127.0.0.1:\d+ since .*: it is tried again for ever$`, told.text())
	err := c.NATS.Publish("x", nil)
	require.True(t, IsAway(err), "%v", err)
	_, err = c.JS.Publish(fleet.Context(t), "x", nil)
	require.True(t, IsAway(err), "%v", err)

	p.Heal()
	select {
	case <-c.Back():
	case <-fleet.Context(t).Done():
		require.Fail(t, "it did not come back", told.text())
	}
	assert.True(t, c.Connected())
	require.NoError(t, c.NATS.FlushTimeout(time.Minute))
	assert.Contains(t, told.text(), "again after")
}

func TestAHalfOpenConnectionIsFoundOut(t *testing.T) {
	s := fleet.Start(t)
	p := fleet.NewProxy(t, s.Address())
	c := connect(t, &Flags{Server: p.URL()}, Options{Ping: 300 * time.Millisecond})
	p.HalfOpen()
	require.Eventually(t, func() bool { return !c.Connected() }, 5*time.Minute, time.Millisecond)
	p.Heal()
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
}

func TestAVerbDoesNotWaitForAServer(t *testing.T) {
	s := fleet.Start(t)
	s.Stop()
	_, err := Connect(fleet.Context(t), &Flags{Server: s.URL()}, Options{})
	require.ErrorContains(t, err, "no server answers there: start nats-server")
}

func TestAnAgentWaitsForAServer(t *testing.T) {
	s := fleet.Start(t)
	s.Stop()
	var told said
	done := make(chan *Conn)
	go func() {
		c, err := Connect(fleet.Context(t), &Flags{Server: s.URL()}, Options{Patient: true, Say: told.say})
		assert.NoError(t, err)
		done <- c
	}()
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "tried again for ever") }, 5*time.Minute, time.Millisecond)
	require.NoError(t, s.Resume())
	c := <-done
	c.Close()
	c.Close()

	s.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Connect(ctx, &Flags{Server: s.URL()}, Options{Patient: true})
	require.ErrorContains(t, err, "no server answers")
}

// users are a password's user, an nkey's and nobody else.
func users(t *testing.T, key nkeys.KeyPair) func(*server.Options) {
	public, err := key.PublicKey()
	require.NoError(t, err)
	return func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "geheim", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"no.>"}},
		}}}
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
	}
}

func newUser(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	key, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := key.Seed()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "user.nk")
	require.NoError(t, os.WriteFile(path, seed, 0o600))
	return key, path
}

func TestCredentials(t *testing.T) {
	key, path := newUser(t)
	s := fleet.Start(t, users(t, key))
	connect(t, new(by(t, Target{URL: s.URL(), NKey: path})), Options{})
	c := connect(t, &Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, Options{})
	assert.Equal(t, s.URL(), c.Where())

	_, other := newUser(t)
	none := filepath.Join(t.TempDir(), "none")
	bad := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(bad, []byte("not a seed"), 0o600))
	for name, tc := range map[string]struct {
		to   Target
		want string
	}{
		"nobody":         {Target{}, "wants to know who this is"},
		"wrong nkey":     {Target{NKey: other}, "does not take nkey file " + other},
		"wrong password": {Target{URL: strings.Replace(s.URL(), "://", "://u:falsch@", 1)}, "does not take the user in the address"},
		"no file":        {Target{NKey: none}, "no such file"},
		"no seed":        {Target{Creds: bad}, "no credentials that can be used"},
		"no CA":          {Target{TLSCA: bad}, "no certificate in PEM"},
		"no certificate": {Target{TLSCert: bad, TLSKey: bad}, "are not a certificate and its key"},
		"no TLS":         {Target{URL: strings.Replace(s.URL(), "nats", "tls", 1)}, "the server has no TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.to.URL == "" {
				tc.to.URL = s.URL()
			}
			to := by(t, tc.to)
			for _, patient := range []bool{false, true} {
				_, err := Connect(fleet.Context(t), &to, Options{Patient: patient})
				require.ErrorContains(t, err, tc.want)
				assert.NotContains(t, err.Error(), "falsch")
			}
		})
	}
}

func TestWhatTheServerRefusesIsSaidOnce(t *testing.T) {
	key, _ := newUser(t)
	s := fleet.Start(t, users(t, key))
	var told said
	c := connect(t, &Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, Options{Say: told.say})
	for range 3 {
		require.NoError(t, c.NATS.Publish("no.way", nil))
	}
	require.NoError(t, c.NATS.FlushTimeout(time.Minute))
	require.Eventually(t, func() bool { return told.text() != "" }, 5*time.Minute, time.Millisecond)
	require.NoError(t, c.NATS.FlushTimeout(time.Minute))
	assert.Equal(t, 1, strings.Count(told.text(), "no.way"), told.text())
	assert.Contains(t, told.text(), "too few rights")
}

func TestCredentialsAreReadAgain(t *testing.T) {
	key, path := newUser(t)
	s := fleet.Start(t, users(t, key))
	c := connect(t, new(by(t, Target{URL: s.URL(), NKey: path})), Options{})
	moved := path + ".away"
	require.NoError(t, os.Rename(path, moved))
	s.Restart(t)
	require.Eventually(t, func() bool { return !c.Connected() }, 5*time.Minute, time.Millisecond)
	require.NoError(t, os.Rename(moved, path))
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
}

// A password is not read again, and nobody is to wait for that.
func TestAPasswordThatChanges(t *testing.T) {
	key, _ := newUser(t)
	s := fleet.Start(t, users(t, key))
	var told said
	connect(t, &Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, Options{Say: told.say})
	s.Reload(t, func(o *server.Options) { o.Users = []*server.User{{Username: "u", Password: "neu"}} })
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "start it anew") }, 5*time.Minute, time.Millisecond)
	assert.NotContains(t, told.text(), "same file")
}

// A server that is reloaded ends the connection of a user who is no longer in its configuration, and does not say why.
func TestAUserWhoIsRemoved(t *testing.T) {
	key, _ := newUser(t)
	s := fleet.Start(t, users(t, key))
	var told said
	c := connect(t, &Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, Options{Say: told.say})
	was := []*server.User{{Username: "u", Password: "geheim"}}
	s.Reload(t, func(o *server.Options) { o.Users = []*server.User{{Username: "other", Password: "geheim"}} })
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "Authorization Violation") }, 5*time.Minute, time.Millisecond)
	assert.Contains(t, told.text(), "end this process and start it anew")
	s.Reload(t, func(o *server.Options) { o.Users = was })
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
	assert.Equal(t, 1, strings.Count(told.text(), "Authorization Violation"), told.text())
}

// What is wrong on the server is said once each and waited for; what is wrong here is not.
func TestPatiently(t *testing.T) {
	s := fleet.Start(t)
	var told []string
	c := connect(t, &Flags{Server: s.URL()}, Options{Say: func(text string) { told = append(told, text) }})
	wrong := []error{errors.New("no stream"), errors.New("no stream"), nats.ErrTimeout}
	require.NoError(t, c.Patiently(t.Context(), func() (err error) {
		if len(wrong) > 0 {
			err, wrong = wrong[0], wrong[1:]
		}
		return err
	}))
	assert.Equal(t, []string{"no stream; it is tried again for ever", "nats: timeout; it is tried again for ever"}, told)

	mine := errors.New("the name is another's")
	require.ErrorIs(t, c.Patiently(t.Context(), func() error { return Final(mine) }), mine)
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Patiently(ctx, func() error { cancel(); return nats.ErrTimeout }), nats.ErrTimeout)
}

func TestAServerThatAnswersNothingIsLeft(t *testing.T) {
	c := connect(t, &Flags{Server: fleet.Start(t).URL() + "," + fleet.Start(t).URL()}, Options{})
	first := c.NATS.ConnectedUrl()
	require.NoError(t, c.Patiently(t.Context(), func() error {
		if is := c.NATS.ConnectedUrl(); is == first || is == "" {
			return nats.ErrTimeout
		}
		return nil
	}))
	c.Leave(&jetstream.APIError{Code: 500, ErrorCode: 10077, Description: "maximum bytes exceeded"})
	assert.True(t, c.NATS.IsConnected(), "another one says the same")
}

// Only a break of the connection changes how a request ends: who asks whether its time was over is told so, also if the
// caller of it all has set that time.
func TestWithin(t *testing.T) {
	s := fleet.Start(t)
	p := fleet.NewProxy(t, s.Address())
	c := connect(t, &Flags{Server: p.URL()}, Options{})
	timed, stop := context.WithTimeoutCause(fleet.Context(t), 0, errors.New("the time is over"))
	defer stop()
	late, end := Within(timed, c.NATS, time.Hour)
	defer end()
	<-late.Done()
	require.ErrorIs(t, late.Err(), context.DeadlineExceeded)

	ended, end := Within(fleet.Context(t), c.NATS, time.Hour)
	end()
	require.ErrorIs(t, ended.Err(), context.Canceled)

	broken, end := Within(fleet.Context(t), c.NATS, time.Hour)
	defer end()
	p.Cut()
	<-broken.Done()
	require.ErrorIs(t, broken.Err(), nats.ErrDisconnected)
}

func TestDelay(t *testing.T) {
	for tries := range 100 {
		d := delay(tries)
		assert.GreaterOrEqual(t, d, firstDelay/2)
		assert.LessOrEqual(t, d, MostDelay)
	}
	assert.GreaterOrEqual(t, delay(1000), MostDelay/2)
}

func TestIsAway(t *testing.T) {
	assert.True(t, IsAway(fmt.Errorf("x: %w", nats.ErrTimeout)))
	assert.True(t, IsAway(context.DeadlineExceeded))
	assert.False(t, IsAway(nats.ErrMaxPayload))
	assert.False(t, IsAway(nil))
}

// A request that the server refuses stays without an answer, and only the refusal beside it says why.
func TestARefusedRequestIsNoSilence(t *testing.T) {
	key, _ := newUser(t)
	s := fleet.Start(t, users(t, key))
	var told said
	c := connect(t, &Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, Options{Say: told.say})
	tries := 0
	require.NoError(t, c.Patiently(t.Context(), func() error {
		switch tries++; tries {
		case 1:
			require.NoError(t, c.NATS.Publish("no.way", nil))
			require.Eventually(t, func() bool { return c.Refusal() != nil }, 5*time.Minute, time.Millisecond)
			return context.DeadlineExceeded
		case 2: // the rights were given since
			return context.DeadlineExceeded
		}
		return nil
	}))
	assert.Regexp(t, `Permissions Violation for Publish to "no.way": the role of this user does not allow it; it is tried again for ever`, told.text())
	assert.Contains(t, told.text(), "\ncontext deadline exceeded; it is tried again for ever")
}

func TestAServerThatTakesConnectionsAndIsSilent(t *testing.T) {
	silent := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	assert.EqualError(t, notConnected(&Target{URL: "nats://127.0.0.1:4222"}, silent),
		"connect to nats://127.0.0.1:4222: it does not answer (read tcp: i/o timeout): look at that server and the network between, or name another one with --server")
}

// A server that has all the connections that it takes says so, and may close the connection before
// that is read. Whoever waits for it hears one sentence, and connects once there is room.
func TestAServerWithoutRoom(t *testing.T) {
	s := fleet.Start(t, func(o *server.Options) { o.MaxConn = 1 })
	first, _ := s.Connect(t)
	_, err := Connect(fleet.Context(t), &Flags{Server: s.URL()}, Options{})
	require.ErrorContains(t, err, "it closes the connection at once")
	var told said
	connected := make(chan *Conn, 1)
	go func() {
		c, _ := Connect(fleet.Context(t), &Flags{Server: s.URL()}, Options{Patient: true, Say: told.say})
		connected <- c
	}()
	require.Eventually(t, func() bool {
		is, err := s.Server().Varz(nil)
		return err == nil && is.TotalConnections > 6
	}, 5*time.Minute, time.Millisecond)
	first.Close()
	c := <-connected
	require.NotNil(t, c)
	c.Close()
	assert.Equal(t, 1, strings.Count(told.text(), "is tried again for ever"), told.text())
}
