package proxy

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// guard lets only the session's client through. A web page that a browser on this
// machine shows can reach the port as well: by its Origin, or by a name of its own
// that resolves to 127.0.0.1 (DNS rebinding), it is told apart before the token is
// looked at.
func (p *Proxy) guard(next http.Handler) http.Handler {
	hosts := map[string]bool{
		fmt.Sprintf("127.0.0.1:%d", p.port): true,
		fmt.Sprintf("localhost:%d", p.port): true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts[r.Host] {
			http.Error(w, "Forbidden: this Host is not served here", http.StatusForbidden)
			return
		}
		if origins := r.Header["Origin"]; len(origins) > 0 && !ours(hosts, origins) {
			http.Error(w, "Forbidden: this Origin is not served here", http.StatusForbidden)
			return
		}
		if !p.authorized(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized: the token of the mcp-config is missing or wrong", http.StatusUnauthorized)
			return
		}
		p.serving.RLock()
		defer p.serving.RUnlock()
		if p.context.Err() != nil {
			http.Error(w, "The session has ended", http.StatusServiceUnavailable)
			return
		}
		p.counts.open(1)
		defer p.counts.open(-1)
		next.ServeHTTP(w, r)
	})
}

// ours reports whether the one origin named is the proxy itself.
func ours(hosts map[string]bool, origins []string) bool {
	host, plain := strings.CutPrefix(origins[0], "http://")
	return len(origins) == 1 && plain && hosts[host]
}

// authorized compares in constant time, so that the token cannot be guessed byte by byte.
func (p *Proxy) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(token), []byte(p.token)) == 1
}
