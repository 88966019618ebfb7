package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/script"
)

// BenchmarkBeside has an agent of this commit and one of the commit HEARTBEAT_BESIDE answer
// the same messages in turn, each with a server of its own: some at once, and some one by
// one. It compares what the agents' own processes take.
func BenchmarkBeside(b *testing.B) {
	commit := os.Getenv("HEARTBEAT_BESIDE")
	if commit == "" {
		b.Skip("HEARTBEAT_BESIDE names no commit to compare with")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(b, err)
	other := b.TempDir()
	command(b, root, "sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, other)
	session, err := os.ReadFile("testdata/session/main.go")
	require.NoError(b, err)
	require.NoError(b, os.MkdirAll(filepath.Join(other, "cmd/session"), 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(other, "cmd/session/main.go"), session, 0o600))
	for name, course := range map[string]struct {
		messages int
		apart    time.Duration
	}{"at once": {300, 0}, "one by one": {40, 300 * time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			was := newSide(b, other, "./cmd/heartbeat-nats", "./cmd/session")
			is := newSide(b, root, "./cmd/heartbeat-nats", "./internal/testing/fleet/testdata/session")
			sides := []*side{was, is}
			for _, s := range sides {
				s.work(course.messages, 0) // the first one is not measured
				s.cpu, s.calls = nil, nil
			}
			for b.Loop() {
				var ratios []time.Duration
				for range 5 {
					for _, s := range sides {
						s.work(course.messages, course.apart)
					}
					slices.Reverse(sides)
					ratios = append(ratios, is.cpu[len(is.cpu)-1]*1000/was.cpu[len(was.cpu)-1])
				}
				for word, s := range map[string]*side{"-was": was, "": is} {
					b.ReportMetric(float64(median(s.cpu))/1e6, "cpu-ms/message"+word)
					b.ReportMetric(float64(median(s.calls))/1000, "calls/message"+word)
				}
				slices.Sort(ratios)
				for word, r := range map[string]time.Duration{"": ratios[len(ratios)/2], "-least": ratios[0], "-most": ratios[len(ratios)-1]} {
					b.ReportMetric(float64(r)/1000, "ratio"+word)
				}
			}
		})
	}
}

// side is an agent of one commit, with its session and its server.
type side struct {
	*testing.B
	server *fleet.Server
	js     jetstream.JetStream
	agent  *exec.Cmd
	sent   int
	cpu    []time.Duration // for a message, of each round
	calls  []time.Duration // thousandths, as are ratios
}

func newSide(b *testing.B, source string, programs ...string) *side {
	s := &side{B: b, server: fleet.Start(b)}
	_, s.js = s.server.Connect(b)
	dir := b.TempDir()
	box, bin := filepath.Join(dir, "inbox.jsonl"), b.TempDir()
	command(b, source, "go", append([]string{"build", "-buildvcs=false", "-o", bin + "/"}, programs...)...)
	command(b, dir, bin+"/heartbeat-nats", "setup", "--server", s.server.URL(), "--stream", "WORK", "--subjects", "work.>")
	s.agent = exec.Command(bin+"/heartbeat-nats", "agent", "--server", s.server.URL(), "--stream", "WORK", "--inbox", box, "--name", "one", "--no-session")
	for _, c := range []*exec.Cmd{s.agent, exec.Command(bin+"/session", box)} {
		said, err := os.Create(filepath.Join(bin, "said"))
		require.NoError(b, err)
		c.Stdout, c.Stderr = said, said
		require.NoError(b, errors.Join(c.Start(), said.Close()))
		b.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // nothing of it is needed
	}
	return s
}

// work sends messages, and returns once all are answered.
func (s *side) work(messages int, apart time.Duration) {
	v, err := s.server.Server().Varz(&server.VarzOptions{})
	require.NoError(s, err)
	own, before := int64(0), v.InMsgs
	began, err := script.CPUTime(s.agent.Process.Pid)
	require.NoError(s, err)
	for range messages {
		s.sent++
		m := &nats.Msg{Subject: "work.a", Header: nats.Header{message.HeaderMsgID: {"m" + strconv.Itoa(s.sent)}}, Data: fmt.Appendf(nil, "entry %0500d", s.sent)}
		_, err := s.js.PublishMsg(s.Context(), m)
		require.NoError(s, err)
		time.Sleep(apart) // the course that is measured
		own++
	}
	require.Eventually(s, func() bool {
		own += 2
		work, err := s.js.Stream(s.Context(), "WORK")
		if err != nil {
			return false
		}
		info, err := work.Info(s.Context())
		return err == nil && info.State.Msgs == 0
	}, 10*time.Minute, 100*time.Millisecond)
	ended, err := script.CPUTime(s.agent.Process.Pid)
	require.NoError(s, err)
	v, err = s.server.Server().Varz(&server.VarzOptions{})
	require.NoError(s, err)
	s.cpu = append(s.cpu, (ended-began)/time.Duration(messages))
	s.calls = append(s.calls, time.Duration((v.InMsgs-before-own)*1000/int64(messages)))
}

func command(b *testing.B, dir, name string, args ...string) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(b, err, "%s", out)
}
