package link

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// maxSecret limits a file of credentials or certificates, in bytes.
const maxSecret = 1 << 20

// credentials returns the options that say who connects. The library reads the files again on each try, so renewed
// files count. A file that is unusable now is an error at once, because no retry mends it.
func credentials(t *Target) (options []nats.Option, err error) {
	files := secrets{t.Creds, t.NKey, t.TLSCA, t.TLSCert, t.TLSKey}
	if err := files.check(); err != nil {
		return nil, err
	}
	options = append(options, nats.SetCustomDialer(files))
	var tried nats.Options
	add := func(o nats.Option, wrong string, files ...any) {
		options = append(options, o)
		if failed := o(&tried); failed != nil && err == nil {
			err = fmt.Errorf(wrong+": %s", append(files, reason(failed))...)
		}
	}
	const useless = "%s has no credentials that can be used"
	switch {
	case t.User != "":
		options = append(options, nats.UserInfo(t.User, t.Password))
	case t.Creds != "":
		add(nats.UserCredentials(t.Creds), useless, t.Creds)
		token, failed := tried.UserJWT()
		if failed == nil {
			t.InboxPrefix = cmp.Or(t.InboxPrefix, inboxOf(token))
			_, failed = tried.SignatureCB(nil)
		}
		if failed != nil {
			return nil, fmt.Errorf(useless+": %w", t.Creds, failed)
		}
	case t.NKey != "":
		key, failed := nats.NkeyOptionFromSeed(t.NKey)
		if failed != nil {
			return nil, fmt.Errorf(useless+": %s", t.NKey, reason(failed))
		}
		options = append(options, key)
	case t.UserJWT != "":
		options = append(options, nats.UserJWTAndSeed(t.UserJWT, t.UserSeed))
	case t.Token != "":
		options = append(options, nats.Token(t.Token))
	}
	if t.TLSCA != "" {
		add(nats.RootCAs(t.TLSCA), "%s has no certificate in PEM", t.TLSCA)
	}
	if t.TLSCert != "" {
		add(nats.ClientCert(t.TLSCert, t.TLSKey), "%s and %s are not a certificate and its key", t.TLSCert, t.TLSKey)
	}
	if t.TLSFirst {
		options = append(options, nats.TLSHandshakeFirst())
	}
	if t.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(t.InboxPrefix))
	}
	return options, err
}

// inboxOf returns the inbox prefix below which a restricted user may listen, or "".
func inboxOf(token string) string {
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return ""
	}
	for _, subject := range claims.Sub.Allow {
		if prefix, found := strings.CutSuffix(subject, ".>"); found && strings.HasPrefix(prefix, "_INBOX") && !strings.Contains(prefix, "*") {
			return prefix
		}
	}
	return ""
}

// secrets are the files that the library reads after it has dialed, while it holds the connection's lock. Dial
// checks them first: there an unreadable file, such as a pipe, would block everything.
type secrets []string

func (s secrets) check() error {
	for _, path := range s {
		if _, err := disk.ReadFile(path, maxSecret); err != nil && path != "" {
			return fmt.Errorf("read credentials: %w", err)
		}
	}
	return nil
}

// Dial implements [nats.CustomDialer].
func (s secrets) Dial(network, address string) (net.Conn, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return net.DialTimeout(network, address, dialTimeout)
}

// final marks an error that no retry mends.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final marks err as a fault that a person has to mend on this machine.
func Final(err error) error { return final{err} }

// notConnected explains why no connection came about. The error is [final] if a person has to mend that.
func notConnected(t *Target, err error) error {
	where := Shown(t.URL)
	var op *net.OpError
	isClosed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case isAuth(err):
		return final{refusedUser(t, where, err)}
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return final{fmt.Errorf("connect to %s: %w", where, wrongServer(err))}
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate"):
		// The server refused the certificate. The library has no error value for that.
		return final{fmt.Errorf("connect to %s: %w", where, wrongClient(t, err))}
	case errors.Is(err, nats.ErrTLS) && isClosed:
		// The server closed the connection before it gave a reason, or has just ended.
		return fmt.Errorf("connect to %s: %w", where, wrongClient(t, err))
	case errors.Is(err, nats.ErrSecureConnWanted), errors.As(err, new(tls.RecordHeaderError)):
		return final{fmt.Errorf("connect to %s: the server has no TLS, and TLS was asked for: leave tls:// and the context's certificates out, or give the server a certificate", where)}
	case errors.Is(err, nats.ErrSecureConnRequired):
		return final{fmt.Errorf("connect to %s: the server wants TLS: write its address as tls://", where)}
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connect to %s: no server answers there: start nats-server, or name another one with --server", where)
	case isClosed, strings.HasSuffix(err.Error(), "connections exceeded"): // a reason that may not reach the client
		return fmt.Errorf("connect to %s: it closes the connection at once, as a server does at a limit (max_connections, or one of the account): its log says why", where)
	case IsAway(err):
		return fmt.Errorf("connect to %s: it does not answer (%s): look at that server and the network between, or name another one with --server", where, reason(err))
	}
	return fmt.Errorf("connect to %s: %s", where, reason(err))
}

func refusedUser(t *Target, where string, err error) error {
	as := t.As()
	token := t.UserJWT
	if t.Creds != "" {
		text, _ := disk.ReadFile(t.Creds, maxSecret) // secrets.check reports what is wrong with the file
		token, _ = nkeys.ParseDecoratedJWT(text)
	}
	claims, wrong := jwt.DecodeUserClaims(token) // a server does not tell its client that they have expired
	switch {
	case wrong == nil && claims.Expires != 0 && time.Now().Unix() >= claims.Expires:
		return fmt.Errorf("connect to %s: the server no longer takes %s, which was valid until %s: get new credentials", where, as, words.Stamp(time.Unix(claims.Expires, 0)))
	case as == "":
		return fmt.Errorf("connect to %s: the server wants to know who this is (%s): name a user with --creds, or a context with %s", where, reason(err), ContextVariable)
	case isAny(err, nats.ErrAuthExpired, nats.ErrAccountAuthExpired, nats.ErrAuthRevoked):
		return fmt.Errorf("connect to %s: the server no longer takes %s (%s): get new credentials", where, as, reason(err))
	}
	return fmt.Errorf("connect to %s: the server does not take %s (%s): it may be the wrong user for this server, or be revoked", where, as, reason(err))
}

func isAuth(err error) bool {
	return isAny(err, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// wrongServer explains why the server's certificate was refused. It cleans the names in it, which come from outside.
func wrongServer(err error) error {
	do := "name who vouches for the server in a context (nats context add NAME --tlsca FILE)"
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		do = "write the server's address with a name that its certificate has, or give it another one"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		do = "give the server a new one, or look at the clock of this machine"
	}
	return fmt.Errorf("%s: %s", words.Line(err.Error()), do)
}

func wrongClient(t *Target, err error) error {
	if t.TLSCert == "" {
		return errors.New("the server wants a certificate of this client: name it in a context (nats context add NAME --tlscert FILE --tlskey FILE)")
	}
	return fmt.Errorf("the server does not take the certificate %s (%s): is it signed by somebody whom the server trusts, and still valid?", t.TLSCert, reason(err))
}
