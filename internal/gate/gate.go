// Package gate admits only requests that are meant for a server of this machine.
//
// A web page in a browser on this machine can reach the port too. Its Origin betrays it, or its Host if it has a name
// that resolves to this machine (DNS rebinding). Guard checks both before the token.
package gate

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// Gate is what a request must bring. Hosts are the accepted values of the header Host, each with its port; nil is for a
// server that no browser can reach.
type Gate struct {
	Hosts map[string]bool
	Token string
}

// Loopback returns the hosts of a server on a loopback port.
func Loopback(port int) map[string]bool {
	hosts := map[string]bool{}
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		hosts[fmt.Sprintf("%s:%d", name, port)] = true
	}
	return hosts
}

// Guard passes to next only requests that bring everything, and refuses the rest.
func (g Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := r.Header["Origin"]
		switch {
		case g.Hosts != nil && !g.Hosts[r.Host]:
			http.Error(w, "Forbidden: this Host is not served here", http.StatusForbidden)
		case len(origins) > 0 && !g.isOurs(origins):
			http.Error(w, "Forbidden: this Origin is not served here", http.StatusForbidden)
		case !g.isAuthorized(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized: the token is missing or wrong", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOurs reports whether the server itself is the only origin.
func (g Gate) isOurs(origins []string) bool {
	host, plain := strings.CutPrefix(origins[0], "http://")
	return len(origins) == 1 && plain && g.Hosts[host]
}

// isAuthorized compares in constant time, so that the token cannot be guessed byte by byte.
func (g Gate) isAuthorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return g.Token != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1
}
