package proxy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnvironment(t *testing.T) {
	for _, c := range []struct{ given, want []string }{
		{[]string{"A=1"}, []string{"A=1"}},
		{[]string{"NO_PROXY=a"}, []string{"NO_PROXY=a"}},
		{[]string{"HTTP_PROXY=http://p", "HTTP_PROXY="}, []string{"HTTP_PROXY=http://p", "HTTP_PROXY="}},
		{[]string{"HTTP_PROXY=http://p"}, []string{"HTTP_PROXY=http://p", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}},
		{[]string{"https_proxy=http://p", "NO_PROXY="}, []string{"https_proxy=http://p", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}},
		{[]string{"NO_PROXY=b", "ALL_PROXY=p", "NO_PROXY=a, b"}, []string{"ALL_PROXY=p", "NO_PROXY=a, b,127.0.0.1"}},
		{[]string{"http_proxy=p", "no_proxy=a", "NO_PROXY=b"}, []string{"http_proxy=p", "NO_PROXY=b,127.0.0.1", "no_proxy=a,127.0.0.1"}},
		{[]string{"http_proxy=p", "no_proxy=a, 127.0.0.1"}, []string{"http_proxy=p", "no_proxy=a, 127.0.0.1"}},
		{[]string{"http_proxy=p", "no_proxy=*"}, []string{"http_proxy=p", "no_proxy=*"}},
	} {
		before := slices.Clone(c.given)
		assert.Equal(t, c.want, Environment(c.given))
		assert.Equal(t, before, c.given)
	}
}
