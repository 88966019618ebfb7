package guardian

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMarked(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{nil, []string{"HEARTBEAT_SESSION=m"}},
		{[]string{"A=1", "HEARTBEAT_SESSION=", "B=2"}, []string{"A=1", "B=2", "HEARTBEAT_SESSION=m"}},
		{[]string{"HEARTBEAT_SESSION=outer", "HEARTBEAT_SESSION_=x"}, []string{"HEARTBEAT_SESSION_=x", "HEARTBEAT_SESSION=outer:m"}},
	} {
		assert.Equal(t, c.want, Marked(c.env, "m"))
	}
}
