package link

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/link/target"
)

// maxSecret is the most bytes of a file with credentials or certificates.
const maxSecret = 1 << 20

// fileError is about a file that the flags or a context name.
type fileError struct{ error }

func (f *fileError) Unwrap() error { return f.error }

// credentials are the options that say who connects. Files are read again at each try, so
// that renewed ones count.
func credentials(t *target.Target) ([]nats.Option, error) {
	how, err := user(t)
	if err != nil {
		return nil, err
	}
	if t.TLSCA != "" || t.TLSCert != "" {
		how = append(how, certificates(t))
	}
	if t.TLSFirst {
		how = append(how, nats.TLSHandshakeFirst())
	}
	if t.InboxPrefix != "" {
		how = append(how, nats.CustomInboxPrefix(t.InboxPrefix))
	}
	return how, nil
}

func user(t *target.Target) ([]nats.Option, error) {
	switch {
	case t.User != "":
		return []nats.Option{nats.UserInfo(t.User, t.Password)}, nil
	case t.Creds != "":
		if _, err := keyIn(t.Creds); err != nil {
			return nil, err
		}
		return []nats.Option{nats.UserJWT(func() (string, error) { return jwtIn(t.Creds) }, signer(t.Creds))}, nil
	case t.NKey != "":
		key, err := keyIn(t.NKey)
		if err != nil {
			return nil, err
		}
		defer key.Wipe()
		public, err := key.PublicKey()
		if err != nil {
			return nil, wrongFile(t.NKey, err)
		}
		return []nats.Option{nats.Nkey(public, signer(t.NKey))}, nil
	case t.UserJWT != "":
		return []nats.Option{nats.UserJWTAndSeed(t.UserJWT, t.UserSeed)}, nil
	case t.Token != "":
		return []nats.Option{nats.Token(t.Token)}, nil
	}
	return nil, nil
}

// signer signs what the server asks to be signed, with the key in a file.
func signer(path string) nats.SignatureHandler {
	return func(nonce []byte) ([]byte, error) {
		key, err := keyIn(path)
		if err != nil {
			return nil, err
		}
		defer key.Wipe()
		return key.Sign(nonce)
	}
}

func jwtIn(path string) (string, error) {
	text, err := secret(path)
	if err != nil {
		return "", err
	}
	jwt, err := nkeys.ParseDecoratedJWT(text)
	if err != nil {
		return "", wrongFile(path, err)
	}
	return jwt, nil
}

func keyIn(path string) (nkeys.KeyPair, error) {
	text, err := secret(path)
	if err != nil {
		return nil, err
	}
	key, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return nil, wrongFile(path, err)
	}
	return key, nil
}

func wrongFile(path string, err error) error {
	return &fileError{fmt.Errorf("%s has no credentials that can be used: %w", path, err)}
}

func secret(path string) ([]byte, error) {
	text, err := disk.ReadFile(path, maxSecret)
	if err != nil {
		return nil, &fileError{fmt.Errorf("read credentials: %w", err)}
	}
	return text, nil
}

// certificates is the option for TLS, which the library tries out before it connects.
func certificates(t *target.Target) nats.Option {
	var own nats.TLSCertHandler
	var roots nats.RootCAsHandler
	if t.TLSCert != "" {
		own = func() (tls.Certificate, error) { return certificate(t.TLSCert, t.TLSKey) }
	}
	if t.TLSCA != "" {
		roots = func() (*x509.CertPool, error) { return authorities(t.TLSCA) }
	}
	return nats.ClientTLSConfig(own, roots)
}

func authorities(path string) (*x509.CertPool, error) {
	text, err := secret(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, &fileError{fmt.Errorf("%s has no certificate in PEM", path)}
	}
	return pool, nil
}

func certificate(cert, key string) (tls.Certificate, error) {
	c, err := secret(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := secret(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(c, k)
	if err != nil {
		err = &fileError{fmt.Errorf("%s and %s are no certificate with its key: %w", cert, key, err)}
	}
	return pair, err
}
