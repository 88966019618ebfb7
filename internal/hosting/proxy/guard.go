package proxy

import (
	"net/http"

	"heartbeat/internal/gate"
)

// guard lets only the session's client through.
func (p *Proxy) guard(next http.Handler) http.Handler {
	g := gate.Gate{Hosts: gate.Loopback(p.port), Token: p.token}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.Refusal(r); status != 0 {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, why, status)
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
