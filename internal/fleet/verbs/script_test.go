package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the command where a script runs it by its name, and keeps
// the contexts of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != commandName { // a script's own environment stays
		for name, value := range map[string]string{"XDG_CONFIG_HOME": "/dev/null/none", "NATS_URL": "", "NATS_CONTEXT": ""} {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
	}
	script.Main(m, map[string]func(){commandName: Main})
}

// TestScripts runs the scripts in testdata/script, with the commands of package script and
// these, each with a server of its own:
//
//	agent NAME answers ID TEXT      an agent takes the message up, and answers it
//	agent NAME late ID TEXT         one that was handed the same message answers it later
//	agent NAME fails ID REASON      the same, and it becomes a dead letter
//	agent NAME takes ID             it is handed out, and nothing more
//	agent NAME says MEMBER=JSON...  what an agent says of itself
//	server stop|start               the server of this script
//	purge STREAM                    somebody empties a stream
//	publish SUBJECT TEXT [HEADER]   a program sends a message, without an id or with NAME:VALUE
//	remake                          somebody deletes the stream and makes it anew
//	remove STREAM [SEQ]             somebody deletes it, or one message of it
//	header SEQ NAME VALUE           a message of WORK has that header
//	consumer rm FILTER              somebody deletes a consumer of WORK
//
// ID is also STREAM:SEQ for a message without one.
func TestScripts(t *testing.T) {
	params := script.Params(setUp)
	params.Cmds["agent"] = cmdAgent
	params.Cmds["server"] = cmdServer
	params.Cmds["purge"] = cmdPurge
	params.Cmds["publish"] = cmdPublish
	params.Cmds["remake"] = cmdRemake
	params.Cmds["remove"] = cmdRemove
	params.Cmds["consumer"] = cmdConsumer
	params.Cmds["header"] = cmdHeader
	testscript.Run(t, params)
}

// world is the server of a script.
type world struct {
	server *fleet.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	held   map[string]upstream.Claim
}

const maxPayload = 8 << 10

func setUp(env *testscript.Env) error {
	s, err := fleet.Run(filepath.Join(env.WorkDir, ".server"), func(o *server.Options) { o.MaxPayload = maxPayload })
	if err != nil {
		return err
	}
	env.Defer(s.Stop)
	nc, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	env.Defer(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	env.Values["world"] = &world{s, nc, js, map[string]upstream.Claim{}}
	for name, value := range map[string]string{
		"NATS_URL": s.URL(), "NATS_CONTEXT": "", "HOME": env.WorkDir, "XDG_CONFIG_HOME": filepath.Join(env.WorkDir, "config"),
		"MAX_PAYLOAD": strconv.Itoa(maxPayload),
	} {
		env.Setenv(name, value)
	}
	return makeStream(js)
}

func cmdHeader(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: header SEQ NAME VALUE")
	}
	seq, err := strconv.ParseUint(args[0], 10, 64)
	ts.Check(err)
	s, err := of(ts).js.Stream(context.Background(), "WORK")
	ts.Check(err)
	m, err := s.GetMsg(context.Background(), seq)
	ts.Check(err)
	if is := m.Header.Get(args[1]); is != args[2] {
		ts.Fatalf("its header %s is %q", args[1], is)
	}
}

func makeStream(js jetstream.JetStream) error {
	plan, err := setup.Make(context.Background(), js, &setup.Wanted{
		Stream: "WORK", Subjects: []string{"work.>"}, MaxDeliver: 5, AckWait: time.Minute, Duplicates: 2 * time.Minute, Replicas: 1,
	})
	if err != nil {
		return err
	}
	return plan.Apply(context.Background())
}

func of(ts *testscript.TestScript) *world { return ts.Value("world").(*world) }

func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case neg || len(args) != 1:
		ts.Fatalf("usage: server stop|start")
	case args[0] == "stop":
		of(ts).server.Stop()
	default:
		w := of(ts)
		ts.Check(w.server.Resume())
		for w.nc.FlushTimeout(time.Second) != nil { // until the script's own connection is back
			time.Sleep(time.Millisecond)
		}
	}
}

func cmdPurge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: purge STREAM")
	}
	found, err := of(ts).js.Stream(context.Background(), args[0])
	ts.Check(err)
	ts.Check(found.Purge(context.Background()))
}

func cmdPublish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: publish SUBJECT TEXT [NAME:VALUE...]")
	}
	m := nats.NewMsg(args[0])
	m.Data = []byte(args[1])
	for _, header := range args[2:] {
		name, value, _ := strings.Cut(header, ":")
		m.Header.Add(name, value)
	}
	_, err := of(ts).js.PublishMsg(context.Background(), m)
	ts.Check(err)
}

func cmdRemake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: remake")
	}
	ts.Check(of(ts).js.DeleteStream(context.Background(), "WORK"))
	script.Poll(ts, "a server that has removed the old stream's files", func() bool { return makeStream(of(ts).js) == nil })
	clear(of(ts).held)
}

func cmdRemove(ts *testscript.TestScript, neg bool, args []string) {
	js, ctx := of(ts).js, context.Background()
	switch {
	case neg || len(args) == 0 || len(args) > 3:
		ts.Fatalf("usage: remove STREAM [SEQ | key KEY]")
	case len(args) == 3:
		kv, err := js.KeyValue(ctx, strings.TrimPrefix(args[0], "KV_"))
		ts.Check(err)
		ts.Check(kv.Delete(ctx, args[2]))
	case len(args) == 1:
		ts.Check(js.DeleteStream(ctx, args[0]))
	default:
		seq, err := strconv.ParseUint(args[1], 10, 64)
		ts.Check(err)
		found, err := js.Stream(ctx, args[0])
		ts.Check(err)
		ts.Check(found.DeleteMsg(ctx, seq))
	}
}

func cmdConsumer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[0] != "rm" {
		ts.Fatalf("usage: consumer rm FILTER")
	}
	ts.Check(of(ts).js.DeleteConsumer(context.Background(), "WORK", message.Consumer(args[1])))
}

func cmdAgent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: agent NAME answers|fails|takes|says ...")
	}
	w, ctx := of(ts), context.Background()
	name, rest := args[0], args[2:]
	switch args[1] {
	case "says":
		ts.Check(w.says(ctx, name, rest))
		return
	case "takes":
		ts.Check(w.take(ctx, name, rest[0]))
		return
	}
	id, text := rest[0], rest[1]
	if file, found := strings.CutPrefix(text, "@"); found {
		text = strings.TrimSuffix(ts.ReadFile(file), "\n")
	}
	c := w.held["late "+id]
	if args[1] != "late" {
		ts.Check(w.take(ctx, name, id))
		c = w.held[id]
		delete(w.held, id)
		w.held["late "+id] = c
	}
	c.Agent = name
	up, err := upstream.Open(ctx, w.js, "WORK")
	ts.Check(err)
	o := upstream.Answer{Reply: text, Settled: upstream.Settled{Attempts: 1, At: time.Now()}}
	if args[1] != "fails" {
		_, err = up.Answer(ctx, c, o)
	} else {
		o.Reply, o.Reason, o.Detail = "", text, "it failed\x1b[2J"
		_, err = up.Dead(ctx, c, upstream.Letter{Answer: o, Payload: []byte("the text of " + id), History: []string{"copy 1 to " + name}, Headers: c.Headers})
	}
	ts.Check(err)
}

// take has an agent pull until it has the message. Agents may hold the same one.
func (w *world) take(ctx context.Context, agent, id string) error {
	pull, err := w.js.Consumer(ctx, "WORK", message.Consumer("work.>"))
	if err != nil {
		return err
	}
	for {
		if _, held := w.held[id]; held {
			return nil
		}
		// A request that a server takes with it when it ends is not answered.
		m, err := pull.Next(jetstream.FetchMaxWait(time.Minute), jetstream.FetchHeartbeat(5*time.Second))
		if err != nil {
			return fmt.Errorf("pull %s: %w", id, err)
		}
		got, err := message.Parse(m)
		if err != nil {
			return err
		}
		c := upstream.Claim{Message: got, Agent: agent}
		up, err := upstream.Open(ctx, w.js, "WORK")
		if err != nil {
			return err
		}
		is, err := up.Take(ctx, c)
		if err != nil {
			return err
		}
		c.Lease = is.Lease
		w.held[got.ID] = c
		if message.IsUnnamed(got.Stream, got.ID) {
			w.held[message.Place(got.Stream, got.Seq)] = c
		}
	}
}

// says puts what an agent says of itself: one whose clock is an hour ahead.
func (w *world) says(ctx context.Context, name string, members []string) error {
	ahead := time.Now().Add(time.Hour)
	a := message.Presence{
		Agent: name, Host: "alpha", PID: 7, Inbox: "inbox.jsonl", Slots: 1, Started: ahead, At: ahead, EverySeconds: 20,
		Source: message.Source{Stream: "WORK", Subject: "work.>"},
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, member := range members {
		for i := range member {
			if member[i] == '=' {
				all[member[:i]] = json.RawMessage(os.Expand(member[i+1:], func(string) string {
					return ahead.Add(-5 * time.Minute).Format(time.RFC3339)
				}))
				break
			}
		}
	}
	if raw, err = json.Marshal(all); err != nil {
		return err
	}
	kv, err := w.js.KeyValue(ctx, message.Agents("WORK"))
	if err == nil {
		_, err = kv.Put(ctx, message.AgentKey(name), raw)
	}
	return err
}
