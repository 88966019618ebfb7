package nats_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/fleet/verbs"
	"heartbeat/internal/testing/fleet"
)

// operated is a server in operator mode: the account WORK has the stream, and exports what agents
// need; the account AGENTS imports that, and its users are the agents.
type operated struct {
	t              *testing.T
	server         *fleet.Server
	operator, work nkeys.KeyPair
	agents, signer nkeys.KeyPair
	claims         *jwt.AccountClaims // of AGENTS
	known          *server.MemAccResolver
	dir            string
}

func newOperated(t *testing.T) *operated {
	o := &operated{t: t, known: &server.MemAccResolver{}, dir: t.TempDir()}
	keys := []*nkeys.KeyPair{&o.work, &o.agents, &o.signer}
	var err error
	o.operator, err = nkeys.CreateOperator()
	require.NoError(t, err)
	for _, k := range keys {
		*k, err = nkeys.CreateAccount()
		require.NoError(t, err)
	}
	sys, err := nkeys.CreateAccount()
	require.NoError(t, err)
	work := jwt.NewAccountClaims(o.public(o.work))
	work.Name = "WORK"
	work.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	o.claims = jwt.NewAccountClaims(o.public(o.agents))
	o.claims.Name = "AGENTS"
	o.claims.SigningKeys.Add(o.public(o.signer))
	for _, subject := range rightsOfAny() {
		export := &jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service}
		if strings.Contains(subject, "MSG.NEXT") {
			export.ResponseType = jwt.ResponseTypeStream
		}
		work.Exports.Add(export)
		o.claims.Imports.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: o.public(o.work), Type: jwt.Service})
	}
	for _, claims := range []*jwt.AccountClaims{work, o.claims} {
		problems := jwt.CreateValidationResults()
		claims.Validate(problems)
		require.Empty(t, problems.Errors()) // with one, nsc would not make it
		o.publish(claims)
	}
	o.publish(jwt.NewAccountClaims(o.public(sys)))
	claims := jwt.NewOperatorClaims(o.public(o.operator))
	claims.SystemAccount = o.public(sys)
	o.server = fleet.Start(t, func(s *server.Options) {
		s.TrustedOperators, s.AccountResolver, s.SystemAccount = []*jwt.OperatorClaims{claims}, o.known, o.public(sys)
	})
	return o
}

func (o *operated) public(key nkeys.KeyPair) string {
	p, err := key.PublicKey()
	require.NoError(o.t, err)
	return p
}

// publish has the server know an account as it is now.
func (o *operated) publish(claims *jwt.AccountClaims) {
	token, err := claims.Encode(o.operator)
	require.NoError(o.t, err)
	require.NoError(o.t, o.known.Store(claims.Subject, token))
	if o.server != nil {
		account, err := o.server.Server().LookupAccount(claims.Subject)
		require.NoError(o.t, err)
		o.server.Server().UpdateAccountClaims(account, claims)
	}
}

// user is who connects with credentials.
func (o *operated) user(name, creds string, options ...nats.Option) *role {
	r := &role{t: o.t, user: name, url: o.server.URL(), flags: []string{"--creds", creds}}
	r.nc, r.js = o.server.Connect(o.t, append(options, nats.UserCredentials(creds),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.note(err) }))...)
	return r
}

// owner is a user of the account WORK without limits.
func (o *operated) owner() *role {
	user, err := nkeys.CreateUser()
	require.NoError(o.t, err)
	token, err := jwt.NewUserClaims(o.public(user)).Encode(o.work)
	require.NoError(o.t, err)
	seed, err := user.Seed()
	require.NoError(o.t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	require.NoError(o.t, err)
	path := filepath.Join(o.dir, "owner.creds")
	require.NoError(o.t, os.WriteFile(path, text, 0o600))
	return o.user("operator", path)
}

// agent is an agent with credentials of its own, made after the server was started.
func (o *operated) agent(name string) *role {
	seed, err := o.signer.Seed()
	require.NoError(o.t, err)
	text, of, err := setup.Credentials("WORK", name, seed, o.public(o.agents))
	require.NoError(o.t, err)
	require.Equal(o.t, o.public(o.agents), of)
	path := filepath.Join(o.dir, name+".creds")
	require.NoError(o.t, os.WriteFile(path, text, 0o600))
	return o.user(name, path, nats.CustomInboxPrefix(setup.InboxPrefix(name)))
}

func (o *operated) underAttack() *attacked {
	a := &attacked{t: o.t, operator: o.owner(), account: o.public(o.agents)}
	a.producer = a.operator
	a.operator.setUp()
	a.one, a.two = o.agent("one"), o.agent("two")
	return a.begin()
}

// rightsOfAny are the rights of all agents together.
func rightsOfAny() (all []string) {
	for _, subject := range setup.Rights("WORK", "NAME") {
		if rest, found := strings.CutSuffix(subject, ".NAME"); found {
			subject = rest + ".*"
		}
		all = append(all, subject)
	}
	return all
}

// The accounts of the configuration that is shipped have the same rights.
func TestTheConfigurationHasTheSameRights(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		assert.ElementsMatch(t, setup.Rights("WORK", name), imports(t, strings.ToUpper(name)))
	}
	assert.Contains(t, setup.Account("WORK", "work"), "\"AGENT_WORK\" {\n", "the account of the stream stays")
	o, err := os.ReadFile("nats-server.conf")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(o), "\n  TWO {", setup.Account("WORK", "three")+"\n  TWO {", 1)), 0o600))
	t.Setenv("NATS_AGENT_THREE", "pw-AGENT_THREE")
	all := rolesOf(t, path)
	all["operator"].setUp()
	all["operator"].send("a")
	three := &role{t: t, user: "three"}
	three.nc, three.js = fleet.Connect(t, strings.Replace(all["one"].url, "one:pw-AGENT_ONE", "three:pw-AGENT_THREE", 1))
	assert.Equal(t, upstream.WasAnswered, three.answer(three.pull("three"), "done").Outcome)
}

// An agent is one file more: the server is told nothing.
func TestAgentsOfAnOperator(t *testing.T) {
	o := newOperated(t)
	owner := o.owner()
	owner.setUp()
	seed, err := o.signer.Seed()
	require.NoError(t, err)
	t.Chdir(o.dir)
	require.NoError(t, os.WriteFile("signer.nk", append(seed, '\n'), 0o600))
	var agents []*working
	for _, name := range []string{"one", "two", "three"} {
		r := &role{t: t, user: name, url: o.server.URL()}
		make := []string{"setup", "agent", name, "--account-seed", "signer.nk", "--account", o.public(o.agents)}
		var out, said bytes.Buffer
		require.Zero(t, verbs.Run(make, cli.Streams{Command: "heartbeat-nats", Out: &out, Err: &said}), said.String())
		require.NotRegexp(t, "SU[A-Z2-7]{56}", out.String()+said.String()) // the seed of a user
		require.NotContains(t, out.String()+said.String(), string(seed))
		w := r.work(t.TempDir(), append([]string{"--stream", "WORK", "--creds", filepath.Join(o.dir, name+".creds")}, fleet.Session...)...)
		w.says("", 1)
		agents = append(agents, w)
	}
	for i := range 6 {
		owner.send(fmt.Sprint("m", i))
	}
	work, err := owner.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := work.Info(fleet.Context(t))
		require.NoError(t, err)
		return info.State.Msgs == 0
	}, 5*time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		out, said, status := owner.command("status", "--json")
		require.Zero(t, status, said)
		return strings.Count(out, `"agent":`) == 3
	}, 5*time.Minute, 50*time.Millisecond)
	for _, w := range agents {
		for _, complaint := range []string{"rights", "no responders", "no response", "deadline", "violation"} {
			assert.NotContains(t, strings.ToLower(w.Said()), complaint)
		}
	}

	// Revoked, one of them says so and waits, and a verb says what may be.
	creds, err := os.ReadFile("two.creds")
	require.NoError(t, err)
	token, err := jwt.ParseDecoratedJWT(creds)
	require.NoError(t, err)
	user, err := jwt.DecodeUserClaims(token)
	require.NoError(t, err)
	o.claims.Revoke(user.Subject)
	o.publish(o.claims)
	agents[1].says("authentication revoked: it is tried again for ever", 1)
	agents[1].says("or be revoked: it is tried again for ever, and new credentials in the same file count", 1)
	two := &role{t: t, url: o.server.URL(), flags: []string{"--creds", "two.creds"}}
	_, said, status := two.command("status")
	assert.Equal(t, cli.ExitError, status)
	assert.Contains(t, said, "does not take creds file two.creds (Authorization Violation): it may be the wrong user for this server, or be revoked")
	o.claims.ClearRevocation(user.Subject)
	o.publish(o.claims)
	agents[1].says("connected to "+o.server.URL()+" again", 1)
}

// The script that makes the accounts asks for the rights of any agent.
func TestTheScriptHasTheRightsOfAnyAgent(t *testing.T) {
	script := read(t, "accounts.sh")
	list := regexp.MustCompile(`heartbeat-nats setup.*\\.NAME.*\*/'`).FindString(script)
	require.NotEmpty(t, list)
	out, err := exec.Command("sh", "-c", list).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, rightsOfAny(), strings.Fields(string(out)))
}

// Another agent of the same account does not hear what the server answers to one.
func TestAnAgentListensAtItsOwnInboxAlone(t *testing.T) {
	o := newOperated(t)
	two := o.agent("two")
	two.mayNot("listen to one", two.listen("_INBOX_one.>"))
	two.mayNot("listen to all", two.listen("_INBOX.>"))
	two.mayNot("have one answer", two.publish("_INBOX_one.x"))
	two.mayNot("be told who it is", two.publish("$SYS.REQ.USER.INFO"))
}

// Where the server refuses what an agent publishes, and stays silent, an agent and a verb say why.
func TestWhatTheCredentialsOfAnAgentDoNotAllow(t *testing.T) {
	o := newOperated(t)
	o.owner().setUp()
	one := o.agent("one")
	_, said, status := one.command("send", "--subject", "work.review", "x")
	assert.Equal(t, cli.ExitError, status)
	assert.Contains(t, said, "the stream WORK does not take the message")
	assert.NotContains(t, said, "all the same", "it is not in the stream")
	one.user = "two"
	w := one.work(t.TempDir(), "--stream", "WORK", "--no-session", "--creds", filepath.Join(o.dir, "one.creds"))
	w.says("give --name as the server's configuration or the credentials have it", 1)
}
