package setup

import (
	"fmt"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"heartbeat/internal/fleet/message"
)

// Rights returns the subjects that an agent may publish to. An agent writes only its own answers and presence. It
// reads no other agent's answer, and no message that it has not taken.
func Rights(stream, agent string) []string {
	name, results, agents, replies := message.Key(agent), message.Bucket(stream), message.Agents(stream), message.Replies(stream)
	return []string{
		// Look at the stream, its consumers and the buckets.
		"$JS.API.INFO", "$JS.API.STREAM.NAMES",
		"$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.INFO." + message.Dead(stream), "$JS.API.STREAM.INFO.KV_" + results,
		"$JS.API.STREAM.INFO.KV_" + agents, "$JS.API.STREAM.INFO.OBJ_" + replies,
		"$JS.API.CONSUMER.LIST." + stream, "$JS.API.CONSUMER.INFO." + stream + ".*",
		// Take, keep and settle messages. The last subject is for servers with js_ack_fc_v2.
		"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*", "$JS.ACK." + stream + ".>", "$JS.ACK.*.*." + stream + ".>",
		// Read and write all decisions and leases, which have no text, and write its own answers.
		"$JS.API.DIRECT.GET.KV_" + results + ".$KV." + results + ".*", "$KV." + results + ".*",
		"$JS.API.DIRECT.GET.KV_" + results + ".$KV." + results + ".lease.*", "$KV." + results + ".lease.*",
		"$KV." + results + ".answer.*." + name, "$KV." + results + ".superseded.*." + name,
		// Write long answers, and see whether they exist, but not read them.
		"$JS.API.DIRECT.GET.OBJ_" + replies + ".$O." + replies + ".M.*", "$O." + replies + ".C.*", "$O." + replies + ".M.*",
		// Read every agent's presence, write its own, and see whether it is to drain.
		"$JS.API.DIRECT.GET.KV_" + agents + ".$KV." + agents + ".agent.*", "$KV." + agents + ".agent." + name,
		"$JS.API.DIRECT.GET.KV_" + agents + ".$KV." + agents + ".drain." + name,
		// Publish dead letters and replies.
		"_hb." + stream + ".dead.*", message.ReplySubject(stream, "*"),
	}
}

// InboxPrefix returns the subject below which the server answers an agent. No other user of its account listens there.
func InboxPrefix(agent string) string { return "_INBOX_" + message.Key(agent) }

// Account returns an agent's account for a server whose account for the stream has the stream's name.
func Account(stream, agent string) string {
	name := strings.ToUpper(message.Key(agent))
	account := name
	if account == stream { // it would replace the stream's own account
		account = "AGENT_" + name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q {\n  users: [ { user: %q, password: $NATS_AGENT_%s } ]\n  imports: [\n", account, agent, strings.NewReplacer("=", "_", "-", "_").Replace(name))
	for _, subject := range Rights(stream, agent) {
		fmt.Fprintf(&b, "    { service: { account: %q, subject: %q } }\n", stream, subject)
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

// Credentials returns a .creds file for a new user with the rights of one agent, and the public key of the user's
// account. The seed is the account's, or that of one of its signing keys; then account is the account's public key.
func Credentials(stream, agent string, seed []byte, account string) (text []byte, owner string, err error) {
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, "", err
	}
	defer key.Wipe()
	signer, err := key.PublicKey()
	switch {
	case err != nil:
		return nil, "", err
	case !nkeys.IsValidPublicAccountKey(signer):
		return nil, "", fmt.Errorf("it is the seed of no account: an account's begins with SA")
	case account == "":
		account = signer
	case !nkeys.IsValidPublicAccountKey(account):
		return nil, "", fmt.Errorf("--account is %q, which is no public key of an account: it has 56 characters and begins with A", account)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	defer user.Wipe()
	public, err := user.PublicKey()
	if err != nil {
		return nil, "", err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = agent
	if account != signer {
		claims.IssuerAccount = account
	}
	claims.Pub.Allow.Add(Rights(stream, agent)...)
	claims.Sub.Allow.Add(InboxPrefix(agent) + ".>")
	token, err := claims.Encode(key)
	if err != nil {
		return nil, "", err
	}
	own, err := user.Seed()
	if err != nil {
		return nil, "", err
	}
	text, err = jwt.FormatUserConfig(token, own)
	return text, account, err
}
