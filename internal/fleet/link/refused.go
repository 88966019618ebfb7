package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// final marks an error that another try does not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final is the same error, marked as one that a person has to mend on this machine.
func Final(err error) error { return final{err} }

// notConnected is the sentence about a try that failed.
func notConnected(t *Target, err error) error {
	where := Shown(t.URL)
	switch {
	case isAuth(err):
		return final{refusedUser(t, where, err)}
	case isCertificate(err):
		return final{fmt.Errorf("connect to %s: %w", where, wrongServer(err))}
	case remotely(err, "certificate"):
		return final{fmt.Errorf("connect to %s: %w", where, wrongClient(t, err))}
	case errors.Is(err, nats.ErrTLS) && isClosed(err):
		// It closed the connection before it could say why, or has just ended.
		return fmt.Errorf("connect to %s: %w", where, wrongClient(t, err))
	case errors.Is(err, nats.ErrSecureConnWanted), errors.As(err, new(tls.RecordHeaderError)):
		return final{fmt.Errorf("connect to %s: the server has no TLS, and TLS was asked for: leave tls:// and the context's certificates out, or give the server a certificate", where)}
	case errors.Is(err, nats.ErrSecureConnRequired):
		return final{fmt.Errorf("connect to %s: the server wants TLS: write its address as tls://", where)}
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connect to %s: no server answers there: start nats-server, or name another one with --server", where)
	}
	return fmt.Errorf("connect to %s: %s", where, reason(err))
}

func refusedUser(t *Target, where string, err error) error {
	as := t.As()
	until := expired(t)
	switch {
	case !until.IsZero():
		return fmt.Errorf("connect to %s: the server no longer takes %s, which was valid until %s: get new credentials", where, as, words.Stamp(until))
	case as == "":
		return fmt.Errorf("connect to %s: the server wants to know who this is (%s): name a user with --creds, or a context with %s", where, reason(err), ContextVariable)
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("connect to %s: the server no longer takes %s (%s): get new credentials", where, as, reason(err))
	}
	return fmt.Errorf("connect to %s: the server does not take %s (%s): is it the right user for this server?", where, as, reason(err))
}

// expired is until when credentials that are no longer valid were. A server does not say so
// to who connects.
func expired(t *Target) (until time.Time) {
	token := t.UserJWT
	if t.Creds != "" {
		text, _ := disk.ReadFile(t.Creds, maxSecret) // what is wrong with it is said elsewhere
		token, _ = nkeys.ParseDecoratedJWT(text)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil || claims.Expires == 0 || time.Now().Unix() < claims.Expires {
		return until
	}
	return time.Unix(claims.Expires, 0)
}

func isAuth(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

func isCertificate(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// wrongServer is about a server's certificate.
func wrongServer(err error) error {
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name) && name.Certificate != nil:
		return fmt.Errorf("the server's certificate is for %s: write its address with that name, or give the server a certificate for %s", namesOf(name.Certificate), words.Line(name.Host))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return fmt.Errorf("its certificate was valid until %s, and from %s: give the server a new one, or look at the clock of this machine", words.Stamp(invalid.Cert.NotAfter), words.Stamp(invalid.Cert.NotBefore))
	}
	return fmt.Errorf("%w: name who vouches for the server in a context (nats context add NAME --tlsca FILE)", err)
}

// namesOf are the names that a certificate is for, as somebody else wrote them.
func namesOf(c *x509.Certificate) string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name at all"
	}
	return words.Brief(strings.Join(all, ", "))
}

// remotely reports whether the server ended the handshake for a reason with these words: the
// library has no values for them.
func remotely(err error, words string) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), words)
}

// wrongClient is about this client's certificate.
func wrongClient(t *Target, err error) error {
	if t.TLSCert == "" {
		return errors.New("the server wants a certificate of this client: name it in a context (nats context add NAME --tlscert FILE --tlskey FILE)")
	}
	return fmt.Errorf("the server does not take the certificate %s (%s): is it from who the server trusts, and still valid?", t.TLSCert, reason(err))
}

// isClosed reports whether the other side closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &n) && n.Timeout()
}
