package link

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a user's configuration: files below nats/, and the environment.
func world(t *testing.T, files map[string]string, environment map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv(URLVariable, environment[URLVariable])
	t.Setenv(ContextVariable, environment[ContextVariable])
	for name, text := range files {
		path := filepath.Join(dir, "nats", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return filepath.Join(dir, "nats")
}

const prod = `{"description":"x","url":"nats://prod:4222","creds":"~/prod.creds","ca":"/ca.pem","jetstream_domain":"hub","inbox_prefix":"_INBOX_x","color_scheme":""}`

func TestResolve(t *testing.T) {
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	files := map[string]string{"context/prod.json": prod, "context.txt": "prod\n", "context/a.b.json": `{"url":"tls://ab","user":"u","password":"p"}`}
	ofProd := Target{URL: "nats://prod:4222", Context: "prod", Creds: home + "/prod.creds", TLSCA: "/ca.pem", JSDomain: "hub", InboxPrefix: "_INBOX_x"}
	with := func(t Target, change func(*Target)) Target { change(&t); return t }
	for name, tc := range map[string]struct {
		flags       Flags
		environment map[string]string
		none        bool
		want        Target
	}{
		"nothing at all":           {none: true, want: Target{URL: DefaultURL}},
		"the selected context":     {want: ofProd},
		"a server alone":           {flags: Flags{Server: "nats://one,nats://two"}, want: Target{URL: "nats://one,nats://two"}},
		"NATS_URL alone":           {environment: map[string]string{URLVariable: "there:4222"}, want: Target{URL: "there:4222"}},
		"a server before NATS_URL": {flags: Flags{Server: "here"}, environment: map[string]string{URLVariable: "there"}, want: Target{URL: "here"}},
		"NATS_CONTEXT":             {environment: map[string]string{ContextVariable: "a.b"}, want: Target{URL: "tls://ab", Context: "a.b", User: "u", Password: "p"}},
		"--context before it":      {flags: Flags{Context: "prod"}, environment: map[string]string{ContextVariable: "a.b"}, want: ofProd},
		"NATS_URL with NATS_CONTEXT": {environment: map[string]string{ContextVariable: "prod", URLVariable: "nats://x"},
			want: with(ofProd, func(t *Target) { t.URL = "nats://x" })},
		"--creds in place of a password": {flags: Flags{Context: "a.b", Creds: "k"}, want: Target{URL: "tls://ab", Context: "a.b", Creds: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.none {
				world(t, nil, tc.environment)
			} else {
				world(t, files, tc.environment)
			}
			got, err := tc.flags.Resolve()
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestWhatCannotBeResolved(t *testing.T) {
	dir := world(t, map[string]string{
		"context/broken.json": `{"url":`, "context/nsc.json": `{"nsc":"nsc://a"}`, "context/huge.json": string(make([]byte, maxContext+1)),
		"context/real.json": `{}`, "context/socks.json": `{"socks_proxy":"socks5://x","url":"nats://a"}`, "context/new.json": `{"later":["x"],"other":""}`,
		"context/half.json": `{"cert":"c"}`, "context/wild.json": `{"inbox_prefix":"_INBOX.*"}`,
	}, nil)
	require.NoError(t, os.Symlink(filepath.Join(dir, "context/real.json"), filepath.Join(dir, "context/link.json")))
	for name, want := range map[string]string{
		"none": "is not there", "broken": "nats context edit broken", "nsc": "it has nsc, which is not supported",
		"socks": "it has socks_proxy, which is not supported", "new": "it has later, which is not supported", "half": "one of cert and key", "huge": "too large",
		"link": "symbolic link", "../real": "no name of a context", "a/b": "no name of a context", " ": "no name of a context",
	} {
		_, err := (&Flags{Context: name}).Resolve()
		assert.ErrorContains(t, err, want, name)
	}
	_, err := (&Flags{Context: "wild"}).Resolve()
	require.ErrorContains(t, err, "without wildcards")
	for _, server := range []string{"nats://", "http://x", "nats://u:geheim@x:y:z", "nats://u:geheim@ x", ","} {
		_, err := (&Flags{Server: server}).Resolve()
		require.Error(t, err, server)
		assert.NotContains(t, err.Error(), "geheim")
	}
	require.NoError(t, os.Symlink("context/real.json", filepath.Join(dir, "context.txt")))
	_, err = (&Flags{}).Resolve()
	assert.ErrorContains(t, err, "symbolic link")
}

// A context as the nats CLI writes it, with all that it may have.
func TestAWholeContext(t *testing.T) {
	world(t, map[string]string{"context/all.json": `{"description":"d","url":"nats://a","socks_proxy":"","token":"t","user":"u","password":"p",
		"creds":"c","nkey":"n","cert":"ce","key":"k","ca":"ca","nsc":"","jetstream_domain":"hub","jetstream_api_prefix":"","jetstream_event_prefix":"e",
		"inbox_prefix":"_INBOX_a","user_jwt":"j","user_seed":"s","color_scheme":"red","tls_first":true,
		"windows_cert_store":"","windows_cert_match":"","windows_cert_match_by":"","windows_ca_certs_match":null}`}, nil)
	got, err := (&Flags{Context: "all"}).Resolve()
	require.NoError(t, err)
	assert.Equal(t, Target{
		URL: "nats://a", Context: "all", Creds: "c", NKey: "n", User: "u", Password: "p", Token: "t", UserJWT: "j", UserSeed: "s",
		TLSCA: "ca", TLSCert: "ce", TLSKey: "k", TLSFirst: true, InboxPrefix: "_INBOX_a", JSDomain: "hub",
	}, got)
	assert.Equal(t, "$JS.hub.API.", got.api())
	assert.Equal(t, "$JS.API.", (&Target{}).api())
	assert.Equal(t, "of.another", (&Target{JSAPIPrefix: "of.another", JSDomain: "hub"}).api())
}

// by is a context with what flags do not say.
func by(t *testing.T, to Target) Flags {
	t.Helper()
	text, err := json.Marshal(to)
	require.NoError(t, err)
	world(t, map[string]string{"context/here.json": string(text)}, nil)
	return Flags{Context: "here"}
}

func TestShown(t *testing.T) {
	assert.Equal(t, "nats://a:1,b,tls://c", Shown("nats://u:p@a:1, u:p@b,tls://c"))
	assert.Equal(t, "nats://x", Shown("nats://u:p@ss@x"))
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--server=nats://x", "--creds=c"}, ""},
		{[]string{"--embed=d"}, ""},
		{[]string{"--embed=d", "--server=x"}, "both --embed and --server"},
		{[]string{"--context="}, "--context is empty"},
	} {
		var o Flags
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		o.Add(f)
		require.NoError(t, f.Parse(tc.args))
		if err := o.Check(f); tc.want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, tc.want)
		}
	}
}

func FuzzShown(f *testing.F) {
	f.Add("nats://u:p@a:1, u:p@b")
	f.Add("u:p://q@a")
	f.Fuzz(func(t *testing.T, list string) {
		assert.NotContains(t, Shown(list), "@")
		_ = checkURLs(list)
	})
}
