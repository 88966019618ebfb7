package target

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Environment variables, as the nats CLI names them.
const (
	URLVariable     = "NATS_URL"
	ContextVariable = "NATS_CONTEXT"
)

// Flags say where a server is and who connects to it, as typed.
type Flags struct {
	Server  string
	Context string
	Creds   string
	NKey    string
	TLSCA   string
	TLSCert string
	TLSKey  string
	Inboxes string
	Embed   string
}

// Add declares the flags.
func (o *Flags) Add(f *pflag.FlagSet) {
	f.StringVar(&o.Server, "server", "", "`URL` of the NATS server, or several with commas between them (also "+URLVariable+"; default: that of the context, or "+DefaultURL+")")
	f.StringVar(&o.Context, "context", "", "`name` of the context of the nats CLI to connect with (also "+ContextVariable+"; default: the one that nats context select chose)")
	f.StringVar(&o.Creds, "creds", "", "`file` with a user's JWT and seed")
	f.StringVar(&o.NKey, "nkey", "", "`file` with a user's nkey seed")
	f.StringVar(&o.TLSCA, "tls-ca", "", "`file` with the certificates of those who may vouch for the server")
	f.StringVar(&o.TLSCert, "tls-cert", "", "`file` with the certificate that this client shows")
	f.StringVar(&o.TLSKey, "tls-key", "", "`file` with the key of that certificate")
	f.StringVar(&o.Inboxes, "inbox-prefix", "", "`subject` below which the server's answers come, where a user may listen only there (default: that of the context, or _INBOX)")
	f.StringVar(&o.Embed, "embed", "", "`directory` of a server for this machine alone: use it, and be it where no other command is")
}

// Check refuses flags that contradict each other. f are those that were parsed.
func (o *Flags) Check(f *pflag.FlagSet) error {
	for _, name := range []string{"server", "context", "creds", "nkey", "tls-ca", "tls-cert", "tls-key", "inbox-prefix", "embed"} {
		given := f.Lookup(name)
		switch {
		case given == nil || !given.Changed:
		case given.Value.String() == "":
			return fmt.Errorf("--%s is empty: give it a value, or leave the flag out", name)
		case o.Embed != "" && name != "embed":
			return fmt.Errorf("both --embed and --%s: a server of this machine alone needs no --%[1]s", name)
		}
	}
	switch {
	case o.Creds != "" && o.NKey != "":
		return errors.New("both --creds and --nkey: a connection has one user, so leave one of them out")
	case o.TLSCert != "" && o.TLSKey == "":
		return errors.New("--tls-cert needs --tls-key")
	case o.TLSKey != "" && o.TLSCert == "":
		return errors.New("--tls-key needs --tls-cert")
	}
	return nil
}
