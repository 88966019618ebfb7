package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/disk"
)

// maxContext is the most bytes that a context may have: one that the nats CLI writes has
// less than one KiB.
const maxContext = 64 << 10

// context is a file of the nats CLI, as version 0.3 writes it.
type context struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`
	JSDomain    string `json:"jetstream_domain"`
	JSAPIPrefix string `json:"jetstream_api_prefix"`
}

// harmless are members that change neither who connects nor where. What else a context
// has, such as socks_proxy or one of a later version of the nats CLI, is refused.
var harmless = []string{"description", "color_scheme", "jetstream_event_prefix"}

// unknown are the members of a context that say something this package does not understand.
func unknown(text []byte) ([]string, error) {
	var all, known map[string]json.RawMessage
	own, err := json.Marshal(context{})
	if err = errors.Join(err, json.Unmarshal(text, &all), json.Unmarshal(own, &known)); err != nil {
		return nil, err
	}
	var names []string
	for name, value := range all {
		_, read := known[name]
		isEmpty := slices.Contains([]string{"null", `""`, "false", "0", "[]", "{}"}, string(value))
		if !read && !isEmpty && !slices.Contains(harmless, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// configDir is where the nats CLI keeps its files.
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

// selected is the context that nats context select chose, or nothing.
func selected() (string, error) {
	dir, err := configDir()
	if err != nil {
		return "", nil // a user without a home has chosen none
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

func readContext(name string) (Target, error) {
	if strings.ContainsAny(name, `/\`) || strings.Contains(name, "..") || strings.TrimSpace(name) == "" {
		return Target{}, fmt.Errorf("context %q: that is no name of a context: nats context ls lists them", name)
	}
	dir, err := configDir()
	if err != nil {
		return Target{}, err
	}
	path := filepath.Join(dir, "context", name+".json")
	text, err := disk.ReadState(path, maxContext)
	if errors.Is(err, fs.ErrNotExist) {
		return Target{}, fmt.Errorf("context %q is not there: %s is missing: nats context ls lists those that are", name, path)
	}
	if err != nil {
		return Target{}, fmt.Errorf("read context %q: %w", name, err)
	}
	var c context
	if err := json.Unmarshal(text, &c); err != nil {
		return Target{}, fmt.Errorf("read context %q: %s: %w: nats context edit %[1]s repairs it", name, path, err)
	}
	names, err := unknown(text)
	if err == nil && len(names) > 0 {
		return Target{}, fmt.Errorf("context %q: it has %s, which is not supported here: name the server and the credentials with --server and --creds", name, strings.Join(names, ", "))
	}
	t, err := c.target(name)
	if err != nil {
		return t, fmt.Errorf("context %q: %w", name, err)
	}
	return t, nil
}

func (c *context) target(name string) (Target, error) {
	if (c.Cert == "") != (c.Key == "") {
		return Target{}, errors.New("it has one of cert and key: nats context edit gives it the other")
	}
	t := Target{
		URL: c.URL, Context: name, Creds: c.Creds, NKey: c.NKey, User: c.User, Password: c.Password, Token: c.Token,
		UserJWT: c.UserJWT, UserSeed: c.UserSeed, TLSCA: c.CA, TLSCert: c.Cert, TLSKey: c.Key, TLSFirst: c.TLSFirst,
		InboxPrefix: c.InboxPrefix, JSDomain: c.JSDomain, JSAPIPrefix: c.JSAPIPrefix,
	}
	for _, path := range []*string{&t.Creds, &t.NKey, &t.TLSCA, &t.TLSCert, &t.TLSKey} {
		if err := inHome(path); err != nil {
			return t, err
		}
	}
	return t, nil
}

// inHome replaces ~ in a path, as the nats CLI does.
func inHome(path *string) error {
	rest, found := strings.CutPrefix(*path, "~/")
	if !found {
		return nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find %s: %w", *path, err)
	}
	*path = filepath.Join(home, rest)
	return nil
}
