package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/presence"
)

// defaultAckWait is that of a consumer which does not say.
const defaultAckWait = time.Minute

// seen is a stream with its agents, as status prints it with --json.
type seen struct {
	Server string `json:"server"`
	Stream string `json:"stream"`
	// At is the server's time, by which all ages are.
	At time.Time `json:"at"`
	// Messages are all in the stream. InWork of them were handed to agents, Waiting were not.
	Messages uint64     `json:"messages"`
	Bytes    uint64     `json:"bytes"`
	Waiting  uint64     `json:"waiting"`
	InWork   int        `json:"in_work"`
	Oldest   *time.Time `json:"oldest,omitempty"`
	// OldestAge is how old the oldest message is, in seconds.
	OldestAge   float64     `json:"oldest_age_seconds"`
	DeadLetters uint64      `json:"dead_letters"`
	Consumers   []consumer  `json:"consumers"`
	Agents      []agentSeen `json:"agents"`
	// Unclaimed are subjects of messages that no consumer takes, a few of them.
	Unclaimed []string `json:"unclaimed_subjects,omitempty"`
	State     state    `json:"state"`
	Why       string   `json:"why"`
	Warnings  []string `json:"warnings,omitempty"`
}

// consumer hands out the messages of some subjects.
type consumer struct {
	Name     string   `json:"name"`
	Subjects []string `json:"subjects"`
	Waiting  uint64   `json:"waiting"`
	InWork   int      `json:"in_work"`
	// Redelivered are those of InWork that were handed out before.
	Redelivered int     `json:"redelivered"`
	Pulls       int     `json:"pulls"`
	AckWait     float64 `json:"ack_wait_seconds"`
}

// agentSeen is an agent, with its times by the server's clock.
type agentSeen struct {
	Agent    string    `json:"agent"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Subject  string    `json:"subject"`
	Inbox    string    `json:"inbox"`
	Slots    int       `json:"slots"`
	LastSeen time.Time `json:"last_seen"`
	SeenAge  float64   `json:"last_seen_age_seconds"`
	State    lives     `json:"state"`
	Holds    []holding `json:"holds"`
	Waiting  int64     `json:"entries_waiting"`
	HeldUp   string    `json:"held_up,omitempty"`
	Answered int64     `json:"answered"`
	Dead     int64     `json:"dead"`
}

// lives is how an agent is.
type lives string

const (
	working  lives = "working"
	idle     lives = "idle"
	heldUp   lives = "held up"
	draining lives = "draining"
	away     lives = "away"  // not seen for so long that others get its messages
	over     lives = "ended" // in order
)

// holding is a message that an agent holds.
type holding struct {
	ID       string     `json:"id"`
	Seq      uint64     `json:"seq"`
	Subject  string     `json:"subject"`
	Copy     uint64     `json:"copy,omitempty"`
	State    string     `json:"state"`
	Since    time.Time  `json:"since"`
	Age      float64    `json:"age_seconds"`
	Progress *time.Time `json:"progress_at,omitempty"`
}

// gather looks at a stream and what belongs to it.
func gather(ctx context.Context, c *link.Conn, name string) (*seen, error) {
	found, err := stream(ctx, c, name)
	if err != nil {
		return nil, err
	}
	g := &gathering{c: c, seen: &seen{Server: c.Where(), Stream: name, Consumers: []consumer{}, Agents: []agentSeen{}}}
	if err := g.consumers(ctx, found); err != nil {
		return nil, err
	}
	info, err := found.Info(ctx) // behind those of the consumers, so that what waits was there
	if err != nil {
		return nil, notFound(c, "the stream "+name, "--stream "+name, err)
	}
	g.depth(info)
	if err := g.agents(ctx); err != nil {
		return nil, err
	}
	dead, err := deadStream(ctx, c, name)
	if err != nil {
		return nil, err
	}
	g.DeadLetters = dead.CachedInfo().State.Msgs
	if err := g.unclaimed(ctx, found); err != nil {
		return nil, err
	}
	g.State, g.Why = g.explain()
	return g.seen, nil
}

type gathering struct {
	*seen
	c      *link.Conn
	doubts int
}

func (g *gathering) depth(info *jetstream.StreamInfo) {
	s := info.State
	g.At, g.Messages, g.Bytes = info.TimeStamp, s.Msgs, s.Bytes
	g.Waiting = s.Msgs - min(s.Msgs, uint64(g.InWork))
	if s.Msgs > 0 {
		g.Oldest, g.OldestAge = &s.FirstTime, seconds(g.At.Sub(s.FirstTime))
	}
}

func (g *gathering) consumers(ctx context.Context, found jetstream.Stream) error {
	list := found.ListConsumers(ctx)
	for info := range list.Info() {
		one := consumer{
			Name: info.Name, Subjects: filters(info), Waiting: info.NumPending, InWork: info.NumAckPending,
			Redelivered: info.NumRedelivered, Pulls: info.NumWaiting, AckWait: info.Config.AckWait.Seconds(),
		}
		g.Consumers = append(g.Consumers, one)
		g.InWork += one.InWork
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list the consumers of the stream %s: %w", g.Stream, said(g.c, err))
	}
	slices.SortFunc(g.Consumers, func(a, b consumer) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// filters are the subjects that a consumer takes.
func filters(info *jetstream.ConsumerInfo) []string {
	switch {
	case info.Config.FilterSubject != "":
		return []string{info.Config.FilterSubject}
	case len(info.Config.FilterSubjects) > 0:
		return info.Config.FilterSubjects
	}
	return []string{">"}
}

// agents reads what agents say of themselves.
func (g *gathering) agents(ctx context.Context) error {
	kv, err := bucket(ctx, g.c, g.Stream, names.Agents(g.Stream))
	if err != nil {
		return err
	}
	type said struct {
		key string
		at  time.Time
		a   presence.Agent
	}
	asked := map[string]bool{} // to drain
	var all []said
	err = values(ctx, g.c, kv, []string{"agent.*", "drain.*"}, func(e jetstream.KeyValueEntry) {
		if strings.HasPrefix(e.Key(), "drain.") {
			asked["agent."+strings.TrimPrefix(e.Key(), "drain.")] = true
			return
		}
		a, err := presence.Parse(e.Value())
		if err != nil || names.Agent(a.Agent) != e.Key() || len(a.Agent) > mostName {
			g.doubt(e)
			return
		}
		all = append(all, said{e.Key(), e.Created(), bounded(a)})
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		one.a.Drain = one.a.Drain || asked[one.key]
		g.Agents = append(g.Agents, g.agent(one.a, one.at))
	}
	slices.SortFunc(g.Agents, func(a, b agentSeen) int { return strings.Compare(a.Agent, b.Agent) })
	return nil
}

// What is taken of what an agent says: whoever has its role can say anything.
const (
	mostName     = 512 // bytes of a name: more than --name takes, and a machine with a folder have
	mostSaid     = 1024
	mostHolds    = 200 // --slots takes half of it
	mostWarnings = 5
)

// bounded is what an agent says, cut to what an honest one would say.
func bounded(a presence.Agent) presence.Agent {
	for _, text := range []*string{&a.Host, &a.Subject, &a.Inbox, &a.HeldUp} {
		*text = cutTo(*text, mostSaid)
	}
	a.Holds = a.Holds[:min(len(a.Holds), mostHolds)]
	for i := range a.Holds {
		h := &a.Holds[i]
		h.Subject, h.State = cutTo(h.Subject, mostSaid), cutTo(h.State, mostSaid)
	}
	return a
}

func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}

// doubt warns of a value that no agent has put.
func (g *gathering) doubt(e jetstream.KeyValueEntry) {
	switch g.doubts++; {
	case g.doubts < mostWarnings:
		g.Warnings = append(g.Warnings, fmt.Sprintf("the key %s of the bucket %s is not what its agent would say", cutTo(e.Key(), mostName), e.Bucket()))
	case g.doubts == mostWarnings:
		g.Warnings = append(g.Warnings, fmt.Sprintf("more keys of the bucket %s are not what their agents would say", e.Bucket()))
	}
}

// agent has the times of an agent by the server's clock: what it says is as old as the
// agent says, and what has passed since it said so.
func (g *gathering) agent(a presence.Agent, put time.Time) agentSeen {
	on := func(t time.Time) time.Time { return put.Add(min(0, t.Sub(a.At))) }
	one := agentSeen{
		Agent: a.Agent, Host: a.Host, PID: a.PID, Subject: a.Subject, Inbox: a.Inbox, Slots: a.Slots,
		LastSeen: put, SeenAge: seconds(g.At.Sub(put)), Holds: []holding{}, Waiting: a.Waiting,
		HeldUp: a.HeldUp, Answered: a.Answered, Dead: a.Dead,
	}
	for _, h := range a.Holds {
		held := holding{ID: h.ID, Seq: h.Seq, Subject: h.Subject, Copy: h.Copy, State: h.State, Since: on(h.Since)}
		held.Age = seconds(g.At.Sub(held.Since))
		if !h.ProgressAt.IsZero() {
			at := on(h.ProgressAt)
			held.Progress = &at
		}
		one.Holds = append(one.Holds, held)
	}
	patience := 3 * a.Every()
	if patience <= 0 {
		patience = defaultAckWait
	}
	switch {
	case a.Ended:
		one.State = over
	case g.At.Sub(put) > patience:
		one.State = away
	case a.Drain:
		one.State = draining
	case len(a.Holds) > 0:
		one.State = working
	case a.HeldUp != "":
		one.State = heldUp
	default:
		one.State = idle
	}
	return one
}

// maxUnclaimed is how many subjects without a consumer are named.
const maxUnclaimed = 5

// unclaimed finds the subjects of messages that no consumer takes. It asks for the subjects
// only where the numbers leave some over.
func (g *gathering) unclaimed(ctx context.Context, found jetstream.Stream) error {
	claimed := uint64(g.InWork)
	for _, one := range g.Consumers {
		claimed += one.Waiting
	}
	if g.Messages <= claimed {
		return nil
	}
	info, err := found.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return notFound(g.c, "the stream "+g.Stream, "--stream "+g.Stream, err)
	}
	for subject := range info.State.Subjects {
		if !slices.ContainsFunc(g.Consumers, func(c consumer) bool {
			return slices.ContainsFunc(c.Subjects, func(filter string) bool { return matches(filter, subject) })
		}) {
			g.Unclaimed = append(g.Unclaimed, subject)
		}
	}
	slices.Sort(g.Unclaimed)
	g.Unclaimed = g.Unclaimed[:min(len(g.Unclaimed), maxUnclaimed)]
	return nil
}

// matches reports whether a filter with wildcards takes a subject.
func matches(filter, subject string) bool {
	want, have := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(have) > i
		case i >= len(have) || token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// values calls do for what each key of some patterns holds.
func values(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, patterns []string, do func(jetstream.KeyValueEntry)) error {
	watch, err := kv.WatchFiltered(ctx, patterns, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("read the bucket %s: %w", kv.Bucket(), said(c, err))
	}
	defer func() { _ = watch.Stop() }() // what it would still say is not needed
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-watch.Updates():
			switch {
			case !open:
				return fmt.Errorf("read the bucket %s: the server ended that: try again", kv.Bucket())
			case e == nil:
				return nil
			}
			do(e)
		}
	}
}

func seconds(d time.Duration) float64 { return max(0, d).Round(time.Millisecond).Seconds() }
