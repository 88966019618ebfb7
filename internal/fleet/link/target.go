package link

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/disk"
)

// Environment variables of the nats CLI.
const (
	URLVariable     = "NATS_URL"
	ContextVariable = "NATS_CONTEXT"
)

// DefaultURL is the server's address if nothing names another.
const DefaultURL = "nats://127.0.0.1:4222"

// maxContext limits a context, in bytes. The nats CLI writes less than one KiB.
const maxContext = 64 << 10

// Flags say where a server is and who connects, as a person typed them.
type Flags struct {
	Server  string
	Context string
	Creds   string
	Embed   string
}

// Add declares the flags on f.
func (o *Flags) Add(f *pflag.FlagSet) {
	f.StringVar(&o.Server, "server", "", "`URL` of the NATS server, or several with commas between them (also "+URLVariable+"; default: that of the context, or "+DefaultURL+")")
	f.StringVar(&o.Context, "context", "", "`name` of the context of the nats CLI to connect with, which has certificates and keys, too (also "+ContextVariable+"; default: the one that nats context select chose)")
	f.StringVar(&o.Creds, "creds", "", "`file` with a user's JWT and seed")
	f.StringVar(&o.Embed, "embed", "", "`directory` of a server for this machine alone, which is started if it does not run: see serve")
}

// Check refuses flags that contradict each other. f holds the parsed flags.
func (o *Flags) Check(f *pflag.FlagSet) error {
	for _, name := range []string{"server", "context", "creds", "embed"} {
		switch given := f.Lookup(name); {
		case !given.Changed:
		case given.Value.String() == "":
			return fmt.Errorf("--%s is empty: give it a value, or leave the flag out", name)
		case o.Embed != "" && name != "embed":
			return fmt.Errorf("both --embed and --%s: a server of this machine alone needs no --%[1]s", name)
		}
	}
	return nil
}

// Target is a server or a cluster, and who connects to it: a context of the nats CLI 0.3, overridden by the flags.
type Target struct {
	Context     string `json:"-"`   // its name, or ""
	URL         string `json:"url"` // one or several, separated by commas
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	TLSCert     string `json:"cert"`
	TLSKey      string `json:"key"`
	TLSCA       string `json:"ca"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`
	JSDomain    string `json:"jetstream_domain"`
	JSAPIPrefix string `json:"jetstream_api_prefix"`
}

// Resolve decides between flags, environment and contexts. A flag beats NATS_URL, which beats a context. If a server
// is named, Resolve ignores the context that nats context select chose, whose password would go to that server.
func (o *Flags) Resolve() (t Target, err error) {
	server, name := cmp.Or(o.Server, os.Getenv(URLVariable)), cmp.Or(o.Context, os.Getenv(ContextVariable))
	if name == "" && server == "" {
		name, err = selected()
	}
	if err == nil && name != "" {
		t, err = readContext(name)
	}
	if err != nil {
		return t, err
	}
	t.URL = cmp.Or(server, t.URL, DefaultURL)
	if o.Creds != "" {
		t.User, t.Password, t.Token, t.NKey, t.UserJWT, t.UserSeed = "", "", "", "", "", ""
		t.Creds = o.Creds
	}
	if strings.ContainsAny(t.InboxPrefix, " \t\r\n*>") || strings.HasPrefix(t.InboxPrefix, ".") || strings.HasSuffix(t.InboxPrefix, ".") {
		return t, fmt.Errorf("inbox_prefix of the context is %q: it is a subject without wildcards, such as _INBOX_one", t.InboxPrefix)
	}
	return t, checkURLs(t.URL)
}

// configDir returns the directory of the nats CLI's files.
func configDir() (string, error) {
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the contexts of the nats CLI: %w: set XDG_CONFIG_HOME", err)
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "nats"), nil
}

// selected returns the context that nats context select chose, or "".
func selected() (string, error) {
	dir, err := configDir()
	if err != nil {
		return "", nil // a user without a home has selected none
	}
	text, err := disk.ReadState(filepath.Join(dir, "context.txt"), maxContext)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read which context of the nats CLI is selected: %w (or name a server with --server)", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func readContext(name string) (t Target, err error) {
	if strings.ContainsAny(name, `/\`) || strings.Contains(name, "..") || strings.TrimSpace(name) == "" {
		return t, fmt.Errorf("context %q: that is no name of a context: nats context ls lists them", name)
	}
	dir, err := configDir()
	if err != nil {
		return t, err
	}
	path := filepath.Join(dir, "context", name+".json")
	text, err := disk.ReadState(path, maxContext)
	if errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("context %q is not there: %s is missing: nats context ls lists those that are", name, path)
	}
	if err != nil {
		return t, fmt.Errorf("read context %q: %w", name, err)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("read context %q: %s: %w: nats context edit %[1]s repairs it", name, path, err)
	}
	t.Context = name
	more := unknown(text)
	switch {
	case len(more) > 0:
		return t, fmt.Errorf("context %q: it has %s, which is not supported here: name the server and the credentials with --server and --creds", name, strings.Join(more, ", "))
	case (t.TLSCert == "") != (t.TLSKey == ""):
		return t, fmt.Errorf("context %q: it has one of cert and key: nats context edit gives it the other", name)
	}
	for _, path := range []*string{&t.Creds, &t.NKey, &t.TLSCA, &t.TLSCert, &t.TLSKey} {
		rest, found := strings.CutPrefix(*path, "~/") // the nats CLI expands it too
		if !found {
			continue
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return t, fmt.Errorf("context %q: find %s: %w", name, *path, err)
		}
		*path = filepath.Join(home, rest)
	}
	return t, nil
}

// harmless members change neither who connects nor where. Any other, such as socks_proxy, is refused.
var harmless = []string{"description", "color_scheme", "jetstream_event_prefix"}

// unknown returns the members of a context that are set and not understood here. text is a JSON object or null.
func unknown(text []byte) (names []string) {
	var all, known map[string]json.RawMessage
	own, _ := json.Marshal(Target{})
	_ = errors.Join(json.Unmarshal(text, &all), json.Unmarshal(own, &known))
	for name, value := range all {
		_, isKnown := known[name]
		isEmpty := slices.Contains([]string{"null", `""`, "false", "0", "[]", "{}"}, string(value))
		if !isKnown && !isEmpty && !slices.Contains(harmless, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func checkURLs(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" { // err would show passwords
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

// Shown returns a list of addresses without passwords.
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

// api returns the prefix of the subjects of JetStream's API.
func (t *Target) api() string {
	if t.JSAPIPrefix == "" && t.JSDomain != "" {
		return "$JS." + t.JSDomain + ".API."
	}
	return cmp.Or(t.JSAPIPrefix, jetstream.DefaultAPIPrefix)
}

// As returns how the user is identified, such as "creds file x.creds", without any secret.
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
