package fleet

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy stands between clients and a server on loopback. It begins by passing everything
// on.
type Proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	change *sync.Cond
	state  state
	open   map[*pair]bool
	closed bool
	total  int
	missed int // since the state was set
}

// state is how the proxy treats connections.
type state struct {
	refuse   bool          // new connections are closed at once
	hold     bool          // nothing is passed on, in no direction
	halfOpen bool          // what the server says is lost, and so is the end of either side
	delay    time.Duration // of each piece, in both directions
}

// pair is one connection of a client and the one to the server.
type pair struct{ client, server net.Conn }

func (p *pair) close() {
	_ = p.client.Close() // either may be closed already
	_ = p.server.Close()
}

// NewProxy starts a proxy to host:port that ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := RunProxy(target)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// RunProxy starts a proxy to host:port.
func RunProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, open: map[*pair]bool{}}
	p.change = sync.NewCond(&p.mu)
	go p.serve()
	return p, nil
}

// Address is host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// URL is where clients connect.
func (p *Proxy) URL() string { return "nats://" + p.Address() }

// Pause holds everything back, in both directions, until [Proxy.Heal]. Connections stay
// open.
func (p *Proxy) Pause() { p.set(state{hold: true}) }

// Delay holds each piece back for so long.
func (p *Proxy) Delay(d time.Duration) { p.set(state{delay: d}) }

// HalfOpen loses what the server says, until [Proxy.Heal], which closes the connections
// that lost something. What clients say arrives; neither side sees the other's end.
func (p *Proxy) HalfOpen() { p.set(state{halfOpen: true}) }

// Cut closes all connections, and refuses new ones until [Proxy.Heal].
func (p *Proxy) Cut() {
	p.set(state{refuse: true})
	p.closeAll()
}

// Drop closes all connections, and lets clients connect again at once.
func (p *Proxy) Drop() { p.closeAll() }

// Heal passes everything on again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.halfOpen {
		p.closeOpen()
	}
	p.state = state{}
	p.change.Broadcast()
}

// Connections is how many are open now, and how many there were in all.
func (p *Proxy) Connections() (open, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open), p.total
}

// Missed is what clients missed since the last fault began: connections that were refused,
// and pieces of what the server said that were lost.
func (p *Proxy) Missed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close() // it may be closed already
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	p.mu.Unlock()
	p.closeAll()
}

func (p *Proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.missed = s, 0
	p.change.Broadcast()
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeOpen()
}

// closeOpen closes all connections under the lock.
func (p *Proxy) closeOpen() {
	for c := range p.open {
		c.close()
		delete(p.open, c)
	}
	p.change.Broadcast()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(client)
	}
}

func (p *Proxy) pass(client net.Conn) {
	if p.refuses() {
		_ = client.Close()
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil { // the server is away
		_ = client.Close()
		return
	}
	c := &pair{client: client, server: server}
	p.mu.Lock()
	if p.closed || p.state.refuse {
		p.mu.Unlock()
		c.close()
		return
	}
	p.open[c], p.total = true, p.total+1
	p.mu.Unlock()
	go p.carry(c, client, server, false)
	p.carry(c, server, client, true)
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.refuse {
		p.missed++
	}
	return p.closed || p.state.refuse
}

// carry passes on what one side says, until that ends.
func (p *Proxy) carry(c *pair, from, to net.Conn, fromServer bool) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		now, open := p.wait(c)
		if !open {
			return
		}
		if now.delay > 0 && n > 0 {
			time.Sleep(now.delay)
		}
		switch {
		case n > 0 && now.halfOpen && fromServer:
			p.mu.Lock()
			p.missed++
			p.mu.Unlock()
		case n > 0:
			if _, wrong := to.Write(b[:n]); wrong != nil && err == nil {
				err = wrong
			}
		}
		if err != nil {
			p.end(c, now.halfOpen)
			return
		}
	}
}

// wait returns once something may be passed on. open is false once the connection was cut.
func (p *Proxy) wait(c *pair) (now state, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.state.hold && p.open[c] && !p.closed {
		p.change.Wait()
	}
	return p.state, p.open[c] && !p.closed
}

// end closes a connection of which a side has ended. Half open, the other side is not
// told until [Proxy.Heal].
func (p *Proxy) end(c *pair, untold bool) {
	if untold {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	c.close()
}
