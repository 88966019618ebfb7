package setup

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// wanted is what setup asks for without flags, but for the changes.
func wanted(change ...func(*Wanted)) *Wanted {
	w := &Wanted{
		Stream: "WORK", MaxDeliver: DefaultMaxDeliver, AckWait: DefaultAckWait, Duplicates: 2 * time.Minute,
		KeepResults: 30 * 24 * time.Hour, Replicas: 1, Given: map[string]bool{},
	}
	for _, c := range change {
		c(w)
	}
	return w
}

func subjects(list ...string) func(*Wanted) {
	return func(w *Wanted) { w.Subjects, w.Given["subjects"] = list, true }
}

func filters(list ...string) func(*Wanted) {
	return func(w *Wanted) { w.For, w.Given["for"] = list, true }
}

func ackWait(d time.Duration) func(*Wanted) {
	return func(w *Wanted) { w.AckWait, w.Given["ack-wait"] = d, true }
}

func start(t *testing.T) (context.Context, jetstream.JetStream) {
	_, js := fleet.Start(t).Connect(t)
	return fleet.Context(t), js
}

func apply(t *testing.T, js jetstream.JetStream, w *Wanted) *Plan {
	t.Helper()
	p, err := Make(fleet.Context(t), js, w)
	require.NoError(t, err)
	require.NoError(t, p.Apply(fleet.Context(t)))
	return p
}

// actions are the steps in short: create stream WORK.
func actions(p *Plan) (all []string) {
	for _, s := range p.Steps {
		if s.Action != Keep {
			all = append(all, s.Action+" "+s.Kind+" "+s.Name)
		}
	}
	return all
}

func TestSetupIsIdempotent(t *testing.T) {
	ctx, js := start(t)
	p, err := Make(ctx, js, wanted())
	require.NoError(t, err)
	assert.Equal(t, []string{
		"create stream WORK", "create consumer hb_work=2E=3E", "create bucket WORK-results", "create bucket WORK-agents",
		"create stream WORK-dead", "create store WORK-replies",
	}, actions(p))
	_, err = Open(ctx, js, "WORK")
	require.ErrorContains(t, err, "stream WORK is not on this server: heartbeat-nats setup --stream WORK makes it", "planning changes nothing")

	require.NoError(t, p.Apply(ctx))
	again := apply(t, js, wanted())
	assert.True(t, done(again), "%v", actions(again))
	l, err := Open(ctx, js, "WORK")
	require.NoError(t, err)
	c := l.Stream.CachedInfo().Config
	assert.Equal(t, jetstream.WorkQueuePolicy, c.Retention)
	assert.Equal(t, jetstream.FileStorage, c.Storage)
	assert.Equal(t, []string{"work.>"}, c.Subjects)
	_, err = l.Results.Create(ctx, "a", nil)
	require.NoError(t, err)
	_, err = l.Results.Create(ctx, "a", nil)
	require.ErrorIs(t, err, jetstream.ErrKeyExists)

	require.NoError(t, js.DeleteKeyValue(ctx, "WORK-agents"))
	_, err = Open(ctx, js, "WORK")
	require.ErrorContains(t, err, "bucket WORK-agents is not on this server")
	assert.Equal(t, []string{"create bucket WORK-agents"}, actions(apply(t, js, wanted())))
}

func TestWhatDiffersIsChanged(t *testing.T) {
	ctx, js := start(t)
	apply(t, js, wanted())
	p := apply(t, js, wanted(subjects("work.a", "work.b.>"), ackWait(30*time.Second), func(w *Wanted) {
		w.MaxDeliver, w.Given["max-deliver"] = 3, true
		w.KeepResults, w.Given["keep-results"] = 0, true
		w.KeepDead, w.Given["keep-dead"] = time.Hour, true
		w.Duplicates, w.Given["duplicates"] = time.Minute, true
	}))
	var differs []string
	for _, s := range p.Steps {
		differs = append(differs, s.Differs...)
	}
	text := strings.Join(differs, "\n")
	for _, part := range []string{
		"takes work.> and will take work.a, work.b.>", "AckWait is 1m0s and becomes 30s", "attempts is 5 and becomes 3",
		"keeps them 30d and will keep them for ever", "keeps them for ever and will keep them 1h", "window for duplicates is 2m0s and becomes 1m0s",
	} {
		assert.Contains(t, text, part)
	}
	assert.True(t, done(apply(t, js, wanted())), "what was not asked for stays")
	c, err := js.Consumer(ctx, "WORK", "hb_work=2E=3E")
	require.NoError(t, err)
	i := c.CachedInfo().Config
	assert.Equal(t, []string{everything}, Filters(&i))
	assert.Equal(t, 30*time.Second, i.AckWait)
	assert.Equal(t, 3, MaxDeliver(&i))
}

func TestConsumersOfSomeSubjects(t *testing.T) {
	ctx, js := start(t)
	apply(t, js, wanted(ackWait(30*time.Second)))
	p := apply(t, js, wanted(filters("work.a", "work.b.>")))
	assert.Equal(t, []string{"remove consumer hb_work=2E=3E", "create consumer hb_work=2Ea", "create consumer hb_work=2Eb=2E=3E"}, actions(p))
	assert.Contains(t, p.Steps[0].Notes[0], "take work.a, work.b.> and not all of work.>")
	c, err := js.Consumer(ctx, "WORK", "hb_work=2Ea")
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, c.CachedInfo().Config.AckWait, "it has the AckWait of the one it replaces")

	assert.Equal(t, []string{"create consumer hb_work=2Ec"}, actions(apply(t, js, wanted(filters("work.c")))))
	assert.True(t, done(apply(t, js, wanted())))
	for bad, want := range map[string]string{"work.*": "takes work.a already", "other.a": "is not among the subjects", "work.b.x": "takes work.b.> already"} {
		_, err := Make(ctx, js, wanted(filters(bad)))
		assert.ErrorContains(t, err, want, bad)
	}
}

// Who settled a message is known for a day, also where results are kept for less.
func TestResultsThatAreKeptForLessThanADay(t *testing.T) {
	ctx, js := start(t)
	keep := func(d time.Duration) func(*Wanted) {
		return func(w *Wanted) { w.AckWait, w.KeepResults, w.Given["keep-results"] = time.Minute, d, true }
	}
	config := func() *jetstream.StreamConfig {
		s, err := js.Stream(ctx, "KV_WORK-results")
		require.NoError(t, err)
		return &s.CachedInfo().Config
	}
	apply(t, js, wanted(keep(time.Hour)))
	kept, own := ResultsFor(config())
	assert.Equal(t, time.Hour, kept)
	assert.True(t, own)
	assert.Equal(t, 24*time.Hour, config().MaxAge)
	assert.True(t, done(apply(t, js, wanted(keep(time.Hour)))))

	p := apply(t, js, wanted(keep(48*time.Hour)))
	assert.True(t, slices.ContainsFunc(p.Steps, func(s *Step) bool {
		return strings.Contains(strings.Join(s.Notes, ""), "until they start again")
	}))
	kept, own = ResultsFor(config())
	assert.Equal(t, 48*time.Hour, kept)
	assert.False(t, own)

	earlier := *config() // as an earlier release made it
	earlier.MaxAge = time.Hour
	_, err := js.UpdateStream(ctx, earlier)
	require.NoError(t, err)
	p = apply(t, js, wanted())
	assert.Equal(t, []string{"change bucket WORK-results"}, actions(p))
	assert.Equal(t, 24*time.Hour, config().MaxAge)
	kept, _ = ResultsFor(config())
	assert.Equal(t, time.Hour, kept)
}

func TestABusyConsumerOfAllSubjectsStays(t *testing.T) {
	ctx, js := start(t)
	apply(t, js, wanted())
	_, err := js.Publish(ctx, "work.a", nil)
	require.NoError(t, err)
	c, err := Consumer(ctx, js, "WORK", "work.>")
	require.NoError(t, err)
	m, err := c.Next()
	require.NoError(t, err)
	_, err = Make(ctx, js, wanted(filters("work.a")))
	require.ErrorContains(t, err, "1 messages are out")
	require.NoError(t, m.DoubleAck(ctx))
}

// What is not there is named with the command that makes it. Nothing is made.
func TestConsumer(t *testing.T) {
	ctx, js := start(t)
	_, err := Consumer(ctx, js, "WORK", "work.a")
	require.ErrorContains(t, err, "setup --stream WORK makes it")
	apply(t, js, wanted(ackWait(9*time.Second)))
	for _, all := range []string{"work.>", ">"} {
		c, err := Consumer(ctx, js, "WORK", all)
		require.NoError(t, err)
		assert.Equal(t, "hb_work=2E=3E", c.CachedInfo().Name)
	}
	for subject, want := range map[string]string{
		"other.a": "takes work.>, which has not all of other.a: name a subject of that stream, or have it take that too: heartbeat-nats setup --stream WORK --subjects 'work.>' --subjects other.a",
		"work a":  "is no subject",
		"work.a":  "has no consumer for work.a alone: heartbeat-nats setup --stream WORK --for work.a makes one",
	} {
		_, err = Consumer(ctx, js, "WORK", subject)
		require.ErrorContains(t, err, want)
	}
	_, there, err := Consumers(ctx, js, "WORK")
	require.NoError(t, err)
	require.Len(t, there, 1)

	apply(t, js, wanted(filters("work.a", "work.b")))
	c, err := Consumer(ctx, js, "WORK", "work.a")
	require.NoError(t, err)
	assert.Equal(t, 9*time.Second, c.CachedInfo().Config.AckWait)
	_, err = Consumer(ctx, js, "WORK", "work.>")
	require.ErrorContains(t, err, "name what one of its consumers takes with --subject: work.a, work.b")

	name, err := StreamFor(ctx, js, "work.x")
	require.NoError(t, err)
	assert.Equal(t, "WORK", name)
	_, err = StreamFor(ctx, js, "none.x")
	require.ErrorContains(t, err, "no stream of this server takes none.x")
}

func TestWhatNoServerCanDo(t *testing.T) {
	ctx, js := start(t)
	for want, w := range map[string]*Wanted{
		"--ack-wait is 2s":              wanted(ackWait(2 * time.Second)),
		"overlap: one message":          wanted(subjects("work.*", "work.a")),
		"is no subject":                 wanted(subjects("work..a")),
		"\"a b\" is no subject":         wanted(subjects("a b")),
		"overlaps _hb.>":                wanted(subjects(">")),
		"overlaps $KV.>":                wanted(subjects("$KV.x.>")),
		"letters, digits, - and _":      wanted(func(w *Wanted) { w.Stream = "a.b" }),
		"--duplicates is 1ms":           wanted(func(w *Wanted) { w.Duplicates = time.Millisecond }),
		"which is less than --duplicat": wanted(func(w *Wanted) { w.KeepResults = time.Minute }),
		"at least twice --ack-wait":     wanted(ackWait(10*time.Minute), func(w *Wanted) { w.KeepResults = 15 * time.Minute }),
	} {
		_, err := Make(ctx, js, w)
		assert.ErrorContains(t, err, want)
	}
}

func TestWhatAgentsCannotWorkWith(t *testing.T) {
	queue := jetstream.StreamConfig{Name: "WORK", Subjects: []string{"work.>"}, Retention: jetstream.WorkQueuePolicy}
	stream := func(change func(*jetstream.StreamConfig)) func(context.Context, jetstream.JetStream) error {
		return func(ctx context.Context, js jetstream.JetStream) error {
			c := queue
			change(&c)
			_, err := js.CreateStream(ctx, c)
			return err
		}
	}
	consumer := func(c jetstream.ConsumerConfig) func(context.Context, jetstream.JetStream) error {
		return func(ctx context.Context, js jetstream.JetStream) error {
			if _, err := js.CreateStream(ctx, queue); err != nil {
				return err
			}
			_, err := js.CreateConsumer(ctx, "WORK", c)
			return err
		}
	}
	for want, there := range map[string]func(context.Context, jetstream.JetStream) error{
		"keeps messages by limits":   stream(func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }),
		"keeps messages by interest": stream(func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }),
		"in memory":                  stream(func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }),
		"does not acknowledge":       stream(func(c *jetstream.StreamConfig) { c.NoAck = true }),
		"under other subjects": stream(func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "work.>", Destination: "other.>"}
		}),
		"from another stream":    stream(func(c *jetstream.StreamConfig) { c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "X"} }),
		"gets its messages from": stream(func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "X"}} }),
		"stream OTHER takes _hb.WORK.dead.>, or some of it, which agents need themselves": stream(func(c *jetstream.StreamConfig) { c.Name, c.Subjects = "OTHER", []string{"_hb.>"} }),
		"stream OTHER takes $KV.WORK-results.>":                                           stream(func(c *jetstream.StreamConfig) { c.Name, c.Subjects = "OTHER", []string{"$KV.WORK-results.x"} }),
		"stream OTHER takes work.>":                                                       stream(func(c *jetstream.StreamConfig) { c.Name = "OTHER" }),
		"priority groups": consumer(jetstream.ConsumerConfig{Durable: "hb_work=2E=3E", FilterSubject: "work.>", AckPolicy: jetstream.AckExplicitPolicy,
			PriorityPolicy: jetstream.PriorityPolicyOverflow, PriorityGroups: []string{"g"}}),
		"consumer other of stream WORK takes work.a already": consumer(jetstream.ConsumerConfig{Durable: "other", FilterSubject: "work.a", AckPolicy: jetstream.AckExplicitPolicy}),
		"is not that of dead letters": func(ctx context.Context, js jetstream.JetStream) error {
			_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "WORK-dead", Subjects: []string{"x"}})
			return err
		},
		"bucket WORK-results is kept in memory": func(ctx context.Context, js jetstream.JetStream) error {
			_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "WORK-results", Storage: jetstream.MemoryStorage})
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, js := start(t)
			require.NoError(t, there(ctx, js))
			_, err := Make(ctx, js, wanted())
			assert.ErrorContains(t, err, want)
		})
	}
}

// A mirror copies what is in the stream, by a consumer that takes nothing.
func TestAStreamThatIsMirrored(t *testing.T) {
	ctx, js := start(t)
	apply(t, js, wanted())
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "COPY", Mirror: &jetstream.StreamSource{Name: "WORK"}})
	require.NoError(t, err)
	s, err := js.Stream(ctx, "WORK")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := s.Info(ctx)
		return err == nil && info.State.Consumers == 2
	}, time.Minute, time.Millisecond, "the mirror has its consumer")
	assert.Equal(t, []string{"remove consumer hb_work=2E=3E", "create consumer hb_work=2Ereview"}, actions(apply(t, js, wanted(filters("work.review")))))
}

// A work queue takes no consumer that acknowledges otherwise, but a stream may have been
// another kind of stream when it got one.
func TestAnotherAckPolicy(t *testing.T) {
	err := unfit(&jetstream.ConsumerInfo{Name: "hb_x", Config: jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}})
	assert.ErrorContains(t, err, "does not wait until each message is acknowledged")
}

func TestLimitsThatLoseMessagesAreSaid(t *testing.T) {
	ctx, js := start(t)
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "WORK", Subjects: []string{"work.>"}, Retention: jetstream.WorkQueuePolicy, MaxAge: time.Hour, MaxMsgsPerSubject: 3, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	p := apply(t, js, wanted())
	require.Len(t, p.Steps[0].Notes, 2)
	assert.Contains(t, p.Steps[0].Notes[0], "older than 1h0m0s")
	assert.Contains(t, p.Steps[0].Notes[1], "only 3 messages of a subject")
}

func TestAConsumerThatDiffersIsMended(t *testing.T) {
	ctx, js := start(t)
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "WORK", Subjects: []string{"work.>"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew})
	require.NoError(t, err)
	_, err = js.CreateConsumer(ctx, "WORK", jetstream.ConsumerConfig{
		Durable: "hb_work=2E=3E", FilterSubject: "work.>", AckPolicy: jetstream.AckExplicitPolicy,
		MaxDeliver: 4, BackOff: []time.Duration{time.Second, 2 * time.Second}, HeadersOnly: true,
		MaxRequestExpires: time.Second,
	})
	require.NoError(t, err)
	p := apply(t, js, wanted())
	var step *Step
	for _, s := range p.Steps {
		if s.Kind == "consumer" {
			step = s
		}
	}
	assert.Len(t, step.Differs, 6, "%q", step.Differs)
	assert.Contains(t, step.Notes[0], "agents that run go by what it was")
	assert.Contains(t, step.Notes[1], "only 512 agents can wait")
	c, err := Consumer(ctx, js, "WORK", "work.>")
	require.NoError(t, err)
	assert.Equal(t, -1, c.CachedInfo().Config.MaxDeliver)
	assert.Equal(t, -1, c.CachedInfo().Config.MaxAckPending)
	assert.Equal(t, DefaultAckWait, c.CachedInfo().Config.AckWait)
	assert.Zero(t, c.CachedInfo().Config.MaxRequestExpires)
}

// all is what a server has: configurations and depths of streams and consumers.
func all(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var b strings.Builder
	streams := js.ListStreams(fleet.Context(t))
	for s := range streams.Info() {
		_, there, err := Consumers(fleet.Context(t), js, s.Config.Name)
		require.NoError(t, err)
		s.TimeStamp = time.Time{}
		for _, c := range there {
			c.TimeStamp, c.NumPending = time.Time{}, 0 // the server counts in its own time; the stream says what it has
		}
		text, err := json.Marshal(map[string]any{"stream": s, "consumers": there})
		require.NoError(t, err)
		b.Write(append(text, '\n'))
	}
	require.NoError(t, streams.Err())
	return b.String()
}

// A plan changes nothing, whatever it finds: that is --dry-run. Nor does one that is refused.
func TestAPlanChangesNothing(t *testing.T) {
	ctx, js := start(t)
	other := func(w *Wanted) {
		w.MaxDeliver, w.KeepResults, w.KeepDead, w.Duplicates = 3, time.Hour, time.Hour, time.Minute
		for _, flag := range []string{"max-deliver", "keep-results", "keep-dead", "duplicates", "replicas"} {
			w.Given[flag] = true
		}
	}
	for _, there := range []func(){
		func() {},
		func() { apply(t, js, wanted()) },
		func() { _, err := js.Publish(ctx, "work.a", nil); require.NoError(t, err) },
		func() { require.NoError(t, js.DeleteKeyValue(ctx, "WORK-agents")) },
	} {
		there()
		before := all(t, js)
		for _, change := range [][]func(*Wanted){
			nil, {other}, {filters("work.a", "work.b")}, {subjects("work.a", "x.>"), ackWait(5 * time.Second)},
			{filters("no.a")}, {func(w *Wanted) { w.Replicas = 3; w.Given["replicas"] = true }},
		} {
			_, _ = Make(ctx, js, wanted(change...)) // some are refused
			assert.Equal(t, before, all(t, js))
		}
	}
}

// done reports whether nothing is to be done.
func done(p *Plan) bool {
	return !slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Action != Keep })
}

// Messages of a subject that the stream no longer takes are still handed out.
func TestOtherSubjectsLeaveNoMessageBehind(t *testing.T) {
	ctx, js := start(t)
	apply(t, js, wanted())
	_, err := js.Publish(ctx, "work.a", nil)
	require.NoError(t, err)
	w := wanted()
	w.Subjects, w.Given = []string{"jobs.>"}, map[string]bool{"subjects": true}
	for range 2 {
		assert.Empty(t, apply(t, js, w).Steps[0].Notes)
		c, err := Consumer(ctx, js, "WORK", "jobs.>")
		require.NoError(t, err)
		assert.Equal(t, uint64(1), c.CachedInfo().NumPending)
	}
	p, err := Make(ctx, js, w)
	require.NoError(t, err)
	for _, s := range p.Steps {
		assert.Equal(t, Keep, s.Action, "%v", s.Differs)
	}
}

// A server that limits the window for duplicates takes a stream with that window, and all that belongs to it.
func TestAServerThatLimitsTheWindow(t *testing.T) {
	_, js := fleet.Start(t, func(o *server.Options) { o.JetStreamLimits.Duplicates = time.Minute }).Connect(t)
	apply(t, js, wanted(func(w *Wanted) { w.Duplicates, w.Given["duplicates"] = time.Minute, true }))
}
