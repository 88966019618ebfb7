package proxy

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stream is one connection of GET /sse and, to the kit, the transport of a session.
type stream struct {
	*mcp.SSEServerTransport
	id         string
	connection mcp.Connection
	ready      chan struct{} // closed once messages can be taken
	ended      chan struct{} // closed once the connection is over, by either side
	end        sync.Once
}

func newStream(w http.ResponseWriter) *stream {
	id := rand.Text()
	return &stream{
		SSEServerTransport: &mcp.SSEServerTransport{
			Endpoint: "/message?sessionId=" + id, Response: w, MaxRequestBodyBytes: maxRequest,
		},
		id: id, ready: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Connect is called by the kit, once.
func (s *stream) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := s.SSEServerTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s.connection = &streamConnection{connection, s}
	return s.connection, nil
}

// streamConnection tells its stream when the kit closes it.
type streamConnection struct {
	mcp.Connection
	stream *stream
}

func (c *streamConnection) SessionID() string { return c.stream.id }

func (c *streamConnection) Close() error {
	err := c.Connection.Close()
	c.stream.end.Do(func() { close(c.stream.ended) })
	return err
}
