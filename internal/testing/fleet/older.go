package fleet

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Older returns the address of a server that says of itself that it has this version.
func Older(t testing.TB, server *Server, version string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go passOlder(client, server.Address(), version)
		}
	}()
	return "nats://" + l.Addr().String()
}

var versions = regexp.MustCompile(`"version":"[^"]*"`)

func passOlder(client net.Conn, target, version string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }() // either side ends both
	for from := bufio.NewReader(server); err == nil; {
		var line []byte
		if line, err = from.ReadBytes('\n'); bytes.HasPrefix(line, []byte("INFO ")) {
			line = versions.ReplaceAll(line, []byte(`"version":"`+version+`"`))
		}
		_, wrong := client.Write(line)
		err = errors.Join(err, wrong)
	}
}
