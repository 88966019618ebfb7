package link

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// operated is a server whose accounts and users an operator signs.
type operated struct {
	t        *testing.T
	server   *fleet.Server
	operator nkeys.KeyPair
	account  nkeys.KeyPair
	claims   *jwt.AccountClaims
	known    *server.MemAccResolver
}

func newOperated(t *testing.T) *operated {
	o := &operated{t: t, known: &server.MemAccResolver{}}
	var err error
	o.operator, err = nkeys.CreateOperator()
	require.NoError(t, err)
	o.account, err = nkeys.CreateAccount()
	require.NoError(t, err)
	o.claims = jwt.NewAccountClaims(public(t, o.account))
	o.publish()
	operator := jwt.NewOperatorClaims(public(t, o.operator))
	o.server = fleet.Start(t, func(s *server.Options) {
		s.JetStream = false
		s.TrustedOperators, s.AccountResolver = []*jwt.OperatorClaims{operator}, o.known
	})
	return o
}

func public(t *testing.T, key nkeys.KeyPair) string {
	p, err := key.PublicKey()
	require.NoError(t, err)
	return p
}

// publish tells the server about the account as it is now.
func (o *operated) publish() {
	token, err := o.claims.Encode(o.operator)
	require.NoError(o.t, err)
	require.NoError(o.t, o.known.Store(o.claims.Subject, token))
	if o.server != nil {
		account, err := o.server.Server().LookupAccount(o.claims.Subject)
		require.NoError(o.t, err)
		o.server.Server().UpdateAccountClaims(account, o.claims)
	}
}

// creds writes credentials of a user into a file.
func (o *operated) creds(path string, user nkeys.KeyPair, until time.Time) {
	claims := jwt.NewUserClaims(public(o.t, user))
	if !until.IsZero() {
		claims.Expires = until.Unix()
	}
	token, err := claims.Encode(o.account)
	require.NoError(o.t, err)
	seed, err := user.Seed()
	require.NoError(o.t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	require.NoError(o.t, err)
	require.NoError(o.t, os.WriteFile(path, text, 0o600))
}

func newKey(t *testing.T) nkeys.KeyPair {
	key, err := nkeys.CreateUser()
	require.NoError(t, err)
	return key
}

func TestCredsOfAnOperator(t *testing.T) {
	o := newOperated(t)
	path := filepath.Join(t.TempDir(), "user.creds")
	user := newKey(t)
	o.creds(path, user, time.Time{})
	connect(t, &Flags{Server: o.server.URL(), Creds: path}, Options{})

	old := filepath.Join(t.TempDir(), "old.creds")
	o.creds(old, newKey(t), time.Now().Add(-time.Hour))
	foreign := filepath.Join(t.TempDir(), "foreign.creds")
	other := newOperated(t)
	other.creds(foreign, newKey(t), time.Time{})
	for name, tc := range map[string]struct{ path, want string }{
		"expired":          {old, "no longer takes creds file " + old + ", which was valid until "},
		"of another":       {foreign, "does not take creds file " + foreign},
		"nobody":           {"", "wants to know who this is"},
		"without a folder": {filepath.Join(old, "x"), "read credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, patient := range []bool{false, true} {
				_, err := Connect(fleet.Context(t), &Flags{Server: o.server.URL(), Creds: tc.path}, Options{Patient: patient})
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

// Credentials that end while they are used take the connection with them, and new ones in
// the same file bring it back.
func TestCredsThatExpire(t *testing.T) {
	o := newOperated(t)
	path := filepath.Join(t.TempDir(), "user.creds")
	user := newKey(t)
	o.creds(path, user, time.Now().Add(6*time.Second)) // in which a slow machine has connected
	var told said
	c := connect(t, &Flags{Server: o.server.URL(), Creds: path}, Options{Say: told.say})
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "authentication expired") }, 5*time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "tried again for ever") }, 5*time.Minute, time.Millisecond)
	o.creds(path, user, time.Now().Add(time.Hour))
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
}

// Nothing waits for a pipe that took the file's place.
func TestCredsThatBecomeAPipe(t *testing.T) {
	o := newOperated(t)
	path := filepath.Join(t.TempDir(), "user.creds")
	user := newKey(t)
	o.creds(path, user, time.Now().Add(6*time.Second)) // in which a slow machine has connected
	var told said
	c := connect(t, &Flags{Server: o.server.URL(), Creds: path}, Options{Say: told.say})
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "authentication expired") }, 5*time.Minute, time.Millisecond)
	time.Sleep(500 * time.Millisecond) // it was tried again by now
	require.False(t, c.Connected())
	require.NoError(t, os.Remove(path))
	o.creds(path, user, time.Now().Add(time.Hour))
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
}

func TestCredsThatAreRevoked(t *testing.T) {
	o := newOperated(t)
	path := filepath.Join(t.TempDir(), "user.creds")
	user := newKey(t)
	o.creds(path, user, time.Time{})
	var told said
	c := connect(t, &Flags{Server: o.server.URL(), Creds: path}, Options{Say: told.say})
	o.claims.Revoke(public(t, user))
	o.publish()
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "authentication revoked") }, 5*time.Minute, time.Millisecond)
	_, err := Connect(fleet.Context(t), &Flags{Server: o.server.URL(), Creds: path}, Options{})
	require.ErrorContains(t, err, "does not take creds file "+path)
	assert.False(t, c.Connected())

	o.claims.ClearRevocation(public(t, user))
	o.publish()
	require.Eventually(t, func() bool { return c.Connected() }, 5*time.Minute, time.Millisecond)
}
