package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// signed is a certificate with its key, in files too.
type signed struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	file, own string
}

// sign makes a certificate: by itself, or by another one.
func sign(t *testing.T, by *signed, change func(*x509.Certificate)) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: t.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	}
	if change != nil {
		change(c)
	}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	require.NoError(t, err)
	c, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	s := &signed{cert: c, key: key, file: filepath.Join(dir, "cert.pem"), own: filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{s.file: {Type: "CERTIFICATE", Bytes: der}, s.own: {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return s
}

// here is a name that the server of a test has.
func here(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }

// secured runs a server with a certificate. It wants one of its clients if ca is given.
func secured(t *testing.T, own, ca *signed) string {
	s := fleet.Start(t, func(o *server.Options) {
		pair, err := tls.LoadX509KeyPair(own.file, own.own)
		require.NoError(t, err)
		o.TLS, o.TLSTimeout = true, 60
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		if ca != nil {
			o.TLSVerify = true
			o.TLSConfig.ClientAuth, o.TLSConfig.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			o.TLSConfig.ClientCAs.AddCert(ca.cert)
		}
	})
	return strings.Replace(s.URL(), "nats://", "tls://", 1)
}

func TestTLS(t *testing.T) {
	ca, other := sign(t, nil, nil), sign(t, nil, nil)
	own, client, foreign := sign(t, ca, here), sign(t, ca, nil), sign(t, other, nil)
	open, closed := secured(t, own, nil), secured(t, own, ca)
	elsewhere := secured(t, sign(t, ca, func(c *x509.Certificate) { c.DNSNames = []string{"nats.example.com"} }), nil)
	old := secured(t, sign(t, ca, func(c *x509.Certificate) { here(c); c.NotAfter = time.Now().Add(-time.Minute) }), nil)

	connect(t, new(by(t, Target{URL: open, TLSCA: ca.file})), Options{})
	c := connect(t, new(by(t, Target{URL: closed, TLSCA: ca.file, TLSCert: client.file, TLSKey: client.own})), Options{})
	state, err := c.NATS.TLSConnectionState()
	require.NoError(t, err)
	assert.True(t, state.HandshakeComplete)

	for name, tc := range map[string]struct {
		to   Target
		want string
	}{
		"nobody vouches":        {Target{URL: open}, "name who vouches for the server in a context"},
		"another one vouches":   {Target{URL: open, TLSCA: other.file}, "name who vouches for the server in a context"},
		"another name":          {Target{URL: elsewhere, TLSCA: ca.file}, "write the server's address with a name that its certificate has"},
		"an old certificate":    {Target{URL: old, TLSCA: ca.file}, "certificate has expired or is not yet valid: "},
		"no certificate":        {Target{URL: closed, TLSCA: ca.file}, "the server wants a certificate of this client: name it in a context"},
		"a foreign certificate": {Target{URL: closed, TLSCA: ca.file, TLSCert: foreign.file, TLSKey: foreign.own}, "the server does not take the certificate " + foreign.file},
		"another's key":         {Target{URL: closed, TLSCA: ca.file, TLSCert: client.file, TLSKey: foreign.own}, "are not a certificate and its key"},
		"no TLS asked for":      {Target{URL: strings.Replace(closed, "tls://", "nats://", 1)}, "name who vouches"},
	} {
		t.Run(name, func(t *testing.T) {
			to := by(t, tc.to)
			for _, patient := range []bool{false, true} {
				_, err := Connect(fleet.Context(t), &to, Options{Patient: patient})
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

// Whoever is connected already is told, once, that the server's certificate has expired meanwhile.
func TestACertificateThatExpires(t *testing.T) {
	ca := sign(t, nil, nil)
	var shown atomic.Pointer[tls.Certificate]
	show := func(own *signed) {
		pair, err := tls.LoadX509KeyPair(own.file, own.own)
		require.NoError(t, err)
		shown.Store(&pair)
	}
	own := sign(t, ca, here)
	show(own)
	s := fleet.Start(t, func(o *server.Options) {
		o.TLS, o.TLSTimeout = true, 60
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.Load(), nil }}
	})
	var told said
	to := by(t, Target{URL: strings.Replace(s.URL(), "nats://", "tls://", 1), TLSCA: ca.file})
	c := connect(t, &to, Options{Say: told.say})
	show(sign(t, ca, func(c *x509.Certificate) { here(c); c.NotAfter = time.Now().Add(-time.Minute) }))
	s.Stop()
	require.NoError(t, s.Resume())
	const expired = "certificate has expired or is not yet valid: "
	require.Eventually(t, func() bool { return strings.Contains(told.text(), expired) }, 5*time.Minute, time.Millisecond)
	show(own)
	require.Eventually(t, c.Connected, 5*time.Minute, time.Millisecond)
	assert.Equal(t, 1, strings.Count(told.text(), expired), told.text())
}
