// Package serving is the NATS server of --embed. It is the one package that links the
// server, and heartbeat-nats-embed the one command: a process that links it has twice the
// memory, and reads its own state every second.
package serving

import (
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const startTimeout = 30 * time.Second

// Start starts a server on loopback, with the files in store and each write synced. It
// listens at port, or at a free one if that is 0, and lets in who has the token. say gets a
// sentence about what goes wrong with it later. end ends it.
func Start(port int, token, store string, say func(string)) (at int, end func(), err error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "heartbeat-nats", Host: "127.0.0.1", Port: port, Authorization: token,
		JetStream: true, StoreDir: store, SyncAlways: true,
		NoSigs: true, DisableShortFirstPing: true,
	})
	if err != nil {
		return 0, nil, err
	}
	s.SetLoggerV2(&log{say: say}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return 0, nil, fmt.Errorf("it was not ready within %v", startTimeout)
	}
	end = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	return s.Addr().(*net.TCPAddr).Port, end, nil
}

// log passes on what is wrong with the server, such as a full disk.
type log struct{ say func(string) }

func (l *log) Noticef(string, ...any) {}
func (l *log) Debugf(string, ...any)  {}
func (l *log) Tracef(string, ...any)  {}
func (l *log) Warnf(format string, v ...any) {
	l.say("the server of this machine: " + fmt.Sprintf(format, v...))
}
func (l *log) Errorf(format string, v ...any) { l.Warnf(format, v...) }
func (l *log) Fatalf(format string, v ...any) { l.Warnf(format, v...) }
