package verbs

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/setup"
)

func seedOf(t *testing.T, key nkeys.KeyPair, path string) (public string) {
	t.Helper()
	seed, err := key.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, seed, 0o600))
	public, err = key.PublicKey()
	require.NoError(t, err)
	return public
}

func TestSetupAgent(t *testing.T) {
	t.Chdir(t.TempDir())
	key, err := nkeys.CreateAccount()
	require.NoError(t, err)
	account := seedOf(t, key, "account.nk")
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seedOf(t, user, "user.nk")
	require.NoError(t, os.WriteFile("text", []byte("SAno seed"), 0o600))

	status, out, said := run(t, "setup", "agent", "desk/1", "--account-seed", "account.nk")
	require.Zero(t, status, said)
	assert.Equal(t, "desk=2F1.creds (agent desk/1 of account "+account+", for stream WORK)\n", out)
	info, err := os.Stat("desk=2F1.creds")
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	text, err := os.ReadFile("desk=2F1.creds")
	require.NoError(t, err)
	token, err := jwt.ParseDecoratedJWT(text)
	require.NoError(t, err)
	claims, err := jwt.DecodeUserClaims(token)
	require.NoError(t, err)
	assert.Equal(t, account, claims.Issuer)
	assert.Empty(t, claims.IssuerAccount)
	assert.ElementsMatch(t, setup.Rights("WORK", "desk/1"), claims.Pub.Allow)
	assert.Equal(t, jwt.StringList{"_INBOX_desk=2F1.>"}, claims.Sub.Allow)

	require.NoError(t, os.Symlink("elsewhere", "linked.creds"))
	for args, want := range map[string]string{
		"desk/1 --account-seed account.nk":            "desk=2F1.creds is there already, and an agent may use it",
		"linked --account-seed account.nk":            "linked.creds",
		"a --account-seed user.nk":                    "user.nk: it is the seed of no account",
		"a --account-seed text":                       "text: ",
		"a --account-seed none.nk":                    "none.nk",
		"a --account-seed account.nk --account UABCD": `--account is "UABCD", which is no public key of an account`,
		"a --account " + account:                      "name its file with --account-seed",
		"":                                            "name the agent",
		"a\xff":                                       `the name is "a\xff", which is not UTF-8`,
		"a b":                                         `unexpected argument "b"`,
	} {
		status, out, said := run(t, append([]string{"setup", "agent"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.ExitError, status, args)
		assert.Empty(t, out)
		assert.Contains(t, said, want, args)
		assert.NotContains(t, said, "SAno")
	}
	_, err = os.Stat("elsewhere")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = os.Stat("a.creds")
	require.ErrorIs(t, err, os.ErrNotExist)

	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}
	status, _, said = run(t, "setup", "agent", "full", "--account-seed", "account.nk")
	disk.TestOnlyObserver = nil
	assert.Equal(t, cli.ExitError, status)
	assert.Contains(t, said, "no space left on device")
	_, err = os.Stat("full.creds")
	require.ErrorIs(t, err, os.ErrNotExist)

	status, out, said = run(t, "setup", "agent", "three", "--stream", "JOBS")
	require.Zero(t, status, said)
	assert.Contains(t, out, `{ service: { account: "JOBS", subject: "$KV.JOBS-results.answer.*.three" } }`)
	status, out, said = run(t, "setup", "agent", "*")
	require.Zero(t, status, said)
	assert.Contains(t, out, `"$KV.WORK-results.answer.*.=2A"`, "a name is no pattern")
}
