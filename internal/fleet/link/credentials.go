package link

import (
	"cmp"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"heartbeat/internal/disk"
)

// maxSecret limits a file of credentials or certificates, in bytes.
const maxSecret = 1 << 20

// credentials returns the options that say who connects. The library reads the files again on each try, so renewed
// ones count. A fault in them now is returned at once, because no retry mends it.
func credentials(t *Target) (how []nats.Option, err error) {
	read := secrets{t.Creds, t.NKey, t.TLSCA, t.TLSCert, t.TLSKey}
	if err := read.check(); err != nil {
		return nil, err
	}
	how = append(how, nats.SetCustomDialer(read))
	var tried nats.Options
	add := func(o nats.Option, wrong string, files ...any) {
		how = append(how, o)
		if failed := o(&tried); failed != nil && err == nil {
			err = fmt.Errorf(wrong+": %s", append(files, reason(failed))...)
		}
	}
	const useless = "%s has no credentials that can be used"
	switch {
	case t.User != "":
		how = append(how, nats.UserInfo(t.User, t.Password))
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
		how = append(how, key)
	case t.UserJWT != "":
		how = append(how, nats.UserJWTAndSeed(t.UserJWT, t.UserSeed))
	case t.Token != "":
		how = append(how, nats.Token(t.Token))
	}
	if t.TLSCA != "" {
		add(nats.RootCAs(t.TLSCA), "%s has no certificate in PEM", t.TLSCA)
	}
	if t.TLSCert != "" {
		add(nats.ClientCert(t.TLSCert, t.TLSKey), "%s and %s are no certificate with its key", t.TLSCert, t.TLSKey)
	}
	if t.TLSFirst {
		how = append(how, nats.TLSHandshakeFirst())
	}
	if t.InboxPrefix != "" {
		how = append(how, nats.CustomInboxPrefix(t.InboxPrefix))
	}
	return how, err
}

// inboxOf returns the prefix of the inbox that a restricted user may listen on, or "".
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
// checks them first: an unreadable one, such as a pipe, would block there.
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
