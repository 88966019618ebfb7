package client

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// anthropic stands in for the services that the first start asks whether they can
// be reached, and returns the environment that leads the client to it.
func anthropic(t *testing.T) []string {
	t.Helper()
	services := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(services.Close)
	proxy := httptest.NewServer(tunnel(services.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	return []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=127.0.0.1", "NODE_TLS_REJECT_UNAUTHORIZED=0"}
}

// tunnel is a proxy that leads to one address, whatever is asked for.
func tunnel(addr string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, strings.ToLower(r.Method)+" is not for a tunnel", http.StatusMethodNotAllowed)
			return
		}
		there, err := net.Dial("tcp", addr)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, unread, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		// The answer comes after the connection is ours, and what the server has read by
		// then is copied too: the client's first byte may be among it.
		if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		go func() { _, _ = io.Copy(there, unread) }()
		_, _ = io.Copy(here, there)
	})
}
