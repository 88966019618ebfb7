package target

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// DefaultURL is where a server is that nobody has named.
const DefaultURL = "nats://127.0.0.1:4222"

// Target is one server, or several of one cluster, and who connects. Paths are as they
// were written.
type Target struct {
	URL     string // one or several, with commas between them
	Context string // the context that it is from, or nothing

	Creds, NKey            string
	User, Password, Token  string
	UserJWT, UserSeed      string
	TLSCA, TLSCert, TLSKey string
	TLSFirst               bool
	InboxPrefix            string
	JSDomain, JSAPIPrefix  string
}

// Resolve decides between flags, environment and contexts. What a flag says counts more
// than NATS_URL, and that more than a context. A context that only nats context select
// chose is not used where a server was named: its password would go there.
func (o *Flags) Resolve() (Target, error) {
	server := o.Server
	if server == "" {
		server = os.Getenv(URLVariable)
	}
	t, err := o.context(server != "")
	if err != nil {
		return t, err
	}
	if server != "" {
		t.URL = server
	}
	if t.URL == "" {
		t.URL = DefaultURL
	}
	if o.Creds != "" || o.NKey != "" {
		t.User, t.Password, t.Token, t.UserJWT, t.UserSeed = "", "", "", "", ""
		t.Creds, t.NKey = o.Creds, o.NKey
	}
	if o.TLSCA != "" {
		t.TLSCA = o.TLSCA
	}
	if o.TLSCert != "" {
		t.TLSCert, t.TLSKey = o.TLSCert, o.TLSKey
	}
	if o.Inboxes != "" {
		t.InboxPrefix = o.Inboxes
	}
	if strings.ContainsAny(t.InboxPrefix, " \t\r\n*>") || strings.HasPrefix(t.InboxPrefix, ".") || strings.HasSuffix(t.InboxPrefix, ".") {
		return t, fmt.Errorf("--inbox-prefix is %q: it is a subject without wildcards, such as _INBOX_one", t.InboxPrefix)
	}
	return t, checkURLs(t.URL)
}

// context is what the context says that was named or selected, if there is one.
func (o *Flags) context(serverNamed bool) (Target, error) {
	name := o.Context
	if name == "" {
		name = os.Getenv(ContextVariable)
	}
	if name != "" {
		return readContext(name)
	}
	if serverNamed {
		return Target{}, nil
	}
	name, err := selected()
	if err != nil || name == "" {
		return Target{}, err
	}
	return readContext(name)
}

func checkURLs(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" { // the error shows passwords
			return fmt.Errorf("the server's address %q cannot be read: write it as %s", Shown(text), DefaultURL)
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf("the server's address %q begins with %s://, and NATS has nats://, tls://, ws:// and wss://", Shown(text), u.Scheme)
		}
	}
	return nil
}

// Shown is a list of addresses without the passwords that they may have.
func Shown(list string) string {
	all := strings.Split(list, ",")
	for i, text := range all {
		text = strings.TrimSpace(text)
		scheme, rest, found := strings.Cut(text, "://")
		if !found || strings.Contains(scheme, "@") { // a password may hold "://"
			scheme, rest = "", text
		} else {
			scheme += "://"
		}
		all[i] = scheme + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(all, ",")
}

// As says by what the user is known: creds file x.creds. It holds no secret.
func (t *Target) As() string {
	switch {
	case t.Creds != "":
		return "creds file " + t.Creds
	case t.NKey != "":
		return "nkey file " + t.NKey
	case t.UserJWT != "":
		return "the JWT in context " + t.Context
	case t.Token != "":
		return "the token in context " + t.Context
	case t.User != "":
		return "user " + t.User
	case t.TLSCert != "":
		return "certificate " + t.TLSCert
	case Shown(t.URL) != t.URL:
		return "the user in the address"
	}
	return ""
}
