package verbs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
)

// seen is a stream with its agents, as status prints it with --json.
type seen struct {
	Server      string      `json:"server"`
	Stream      string      `json:"stream"`
	At          time.Time   `json:"at"` // the server's time, as all times here
	Messages    uint64      `json:"messages"`
	Bytes       uint64      `json:"bytes"`
	Waiting     uint64      `json:"waiting"`
	InWork      int         `json:"in_work"`
	Oldest      *time.Time  `json:"oldest,omitempty"`
	OldestAge   float64     `json:"oldest_age_seconds"`
	DeadLetters uint64      `json:"dead_letters"`
	PausedFor   float64     `json:"paused_for_seconds,omitempty"`
	Consumers   []consumer  `json:"consumers"`
	Agents      []agentSeen `json:"agents"`
	Unclaimed   []string    `json:"unclaimed_subjects,omitempty"` // without a consumer
	State       state       `json:"state"`
	Why         string      `json:"why"`
	Warnings    []string    `json:"warnings,omitempty"`

	nc       *nats.Conn // its server is named in commands to type
	forSetup string     // the first of Unclaimed, as an argument for setup
	passed   string     // a consumer that no longer hands out what the stream still has, or ""
}

// consumer hands out the messages of some subjects.
type consumer struct {
	Name        string   `json:"name"`
	Subjects    []string `json:"subjects"`
	Waiting     uint64   `json:"waiting"`
	InWork      int      `json:"in_work"`
	Redelivered int      `json:"redelivered"` // of those in work
	Pulls       int      `json:"pulls"`
	AckWait     float64  `json:"ack_wait_seconds"`
	info        *jetstream.ConsumerInfo
}

// agentSeen is an agent, with times by the server's clock.
type agentSeen struct {
	Agent    string        `json:"agent"`
	Host     string        `json:"host"`
	PID      int           `json:"pid"`
	Release  string        `json:"release,omitempty"`
	Subject  string        `json:"subject"`
	Inbox    string        `json:"inbox"`
	Slots    int           `json:"slots"`
	LastSeen time.Time     `json:"last_seen"`
	SeenAge  float64       `json:"last_seen_age_seconds"`
	State    lives         `json:"state"`
	Holds    []holding     `json:"holds"`
	Waiting  int64         `json:"entries_waiting"`
	HeldUp   string        `json:"held_up,omitempty"`
	Answered int64         `json:"answered"`
	Dead     int64         `json:"dead"`
	Troubles []see.Trouble `json:"troubles,omitempty"` // of its inbox, if that is on this machine

	busy         bool   // with entries of others
	path, ledger string // of the inbox
	consumer     string
}

type lives string

const (
	working  lives = "working"
	idle     lives = "idle"
	heldUp   lives = "held up"
	draining lives = "draining"
	away     lives = "away"  // unseen for so long that others get its messages
	over     lives = "ended" // in order
)

// forgotten is how long an unseen agent that holds nothing is still shown.
const forgotten = time.Hour

type holding struct {
	message.Hold
	Age float64 `json:"age_seconds"`
}

func (o *common) gather(ctx context.Context) (*seen, error) {
	found, err := o.openStream(ctx, o.stream)
	if err != nil {
		return nil, err
	}
	s := &seen{Server: o.c.Where(), nc: o.c.NATS, Stream: o.stream, Consumers: []consumer{}, Agents: []agentSeen{}}
	_, all, err := setup.Consumers(ctx, o.c.JS, o.stream)
	if err != nil {
		return nil, o.explain(err)
	}
	for i, info := range all {
		if rest := info.PauseRemaining.Seconds(); i == 0 || rest < s.PausedFor {
			s.PausedFor = rest // until the first of them goes on
		}
		s.Consumers = append(s.Consumers, consumer{
			Name: info.Name, Subjects: setup.Filters(&info.Config), Waiting: info.NumPending, InWork: info.NumAckPending,
			Redelivered: info.NumRedelivered, Pulls: info.NumWaiting, AckWait: info.Config.AckWait.Seconds(), info: info,
		})
		s.InWork += info.NumAckPending
	}
	info, err := found.Info(ctx) // after the consumers, so that it counts all that they count
	if err != nil {
		return nil, o.notFound("the stream "+o.stream, err)
	}
	state := info.State
	s.At, s.Messages, s.Bytes = info.TimeStamp, state.Msgs, state.Bytes
	s.Waiting = state.Msgs - min(state.Msgs, uint64(s.InWork))
	for _, note := range setup.Drops(&info.Config) {
		s.Warnings = append(s.Warnings, "stream "+o.stream+": "+note)
	}
	if err := setup.TooOld(o.c.JS); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	if state.Msgs > 0 {
		s.Oldest, s.OldestAge = &state.FirstTime, seconds(s.At.Sub(state.FirstTime))
	}
	if err := o.gatherAgents(ctx, s); err != nil {
		return nil, err
	}
	dead, err := o.openStream(ctx, message.Dead(o.stream))
	if err != nil {
		return nil, err
	}
	s.DeadLetters = dead.CachedInfo().State.Msgs
	if _, err := o.openBucket(ctx, message.Bucket(o.stream)); err != nil { // without which no agent works
		return nil, err
	}
	if err := o.gatherUnclaimed(ctx, s, found); err != nil {
		return nil, err
	}
	s.State, s.Why = s.explain()
	return s, nil
}

func (o *common) gatherAgents(ctx context.Context, s *seen) error {
	kv, err := o.openBucket(ctx, message.Agents(o.stream))
	if err != nil {
		return err
	}
	asked := map[string]bool{} // to drain
	doubts := 0
	err = o.values(ctx, kv, []string{"agent.*", "drain.*"}, func(e jetstream.KeyValueEntry) {
		if name, isDrain := strings.CutPrefix(e.Key(), "drain."); isDrain {
			asked[name] = true
			return
		}
		a, err := message.ParsePresence(e.Value())
		if err == nil && message.AgentKey(a.Agent) == e.Key() && len(a.Agent) <= mostName {
			s.Agents = append(s.Agents, agentAt(s.At, bounded(a), e.Created()))
			return
		}
		switch doubts++; { // no agent wrote that value
		case doubts < mostWarnings:
			s.Warnings = append(s.Warnings, fmt.Sprintf("the key %s of the bucket %s is not what its agent would say", cutTo(e.Key(), mostName), e.Bucket()))
		case doubts == mostWarnings:
			s.Warnings = append(s.Warnings, fmt.Sprintf("more keys of the bucket %s are not what their agents would say", e.Bucket()))
		}
	})
	if err != nil {
		return err
	}
	s.Agents = slices.DeleteFunc(s.Agents, func(a agentSeen) bool { return a.isForgotten(s.At) })
	for i, a := range s.Agents {
		if asked[message.Key(a.Agent)] && a.State != away && a.State != over {
			s.Agents[i].State = draining
		}
	}
	slices.SortFunc(s.Agents, func(a, b agentSeen) int { return strings.Compare(a.Agent, b.Agent) })
	s.warnOfReleases()
	return nil
}

// warnOfReleases warns if agents run several releases, as in a rolling upgrade.
func (s *seen) warnOfReleases() {
	agents := map[string][]string{}
	for _, a := range s.Agents {
		if a.State != over {
			release := cmp.Or(a.Release, "an older release")
			agents[release] = append(agents[release], a.Agent)
		}
	}
	if len(agents) < 2 {
		return
	}
	var all []string
	for _, release := range slices.Sorted(maps.Keys(agents)) {
		all = append(all, release+" ("+listed(agents[release])+")")
	}
	s.Warnings = append(s.Warnings, "agents have several releases: "+strings.Join(all, ", "))
}

// Limits on an agent's presence. Anybody with an agent's role can write anything there.
const (
	mostName     = 512 // bytes of a name: more than --name takes, or a host with a folder has
	mostText     = 1024
	mostHolds    = 200 // twice as many as --slots takes
	mostWarnings = 5
)

// bounded cuts a presence to what an honest agent would publish.
func bounded(a message.Presence) message.Presence {
	for _, text := range []*string{&a.Host, &a.Release, &a.Subject, &a.Inbox, &a.Path, &a.HeldUp} {
		*text = cutTo(*text, mostText)
	}
	a.Holds = a.Holds[:min(len(a.Holds), mostHolds)]
	for i := range a.Holds {
		h := &a.Holds[i]
		h.Subject, h.State = cutTo(h.Subject, mostText), cutTo(h.State, mostText)
	}
	return a
}

func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}

// mostInboxes limits from how many inboxes of this machine troubles are read.
const mostInboxes = 50

// addTroubles adds the troubles of inboxes on this machine, if the lock beside an inbox is the agent's.
func (s *seen) addTroubles() {
	host, _ := os.Hostname() // empty if there is none
	var here []*agentSeen
	var paths []string
	for i := range s.Agents {
		a := &s.Agents[i]
		if len(here) < mostInboxes && a.Host == host && filepath.IsAbs(a.path) && upstream.IsHere(a.path, a.ledger) {
			here, paths = append(here, a), append(paths, a.path)
		}
	}
	for i, troubles := range see.TroublesAt(paths...) {
		here[i].Troubles = troubles
	}
}

// isForgotten reports whether to leave an agent out, since each start may have a name of its own.
func (a *agentSeen) isForgotten(now time.Time) bool {
	return (a.State == away || a.State == over) && now.Sub(a.LastSeen) >= forgotten && len(a.Holds) == 0
}

// agentAt converts an agent's times to the server's clock: their age by the agent's clock, plus the time since.
func agentAt(now time.Time, a message.Presence, put time.Time) agentSeen {
	on := func(t time.Time) time.Time { return put.Add(min(0, t.Sub(a.At))) }
	one := agentSeen{
		Agent: a.Agent, Host: a.Host, PID: a.PID, Release: a.Release, Subject: a.Subject, Inbox: a.Inbox, Slots: a.Slots,
		LastSeen: put, SeenAge: seconds(now.Sub(put)), Holds: []holding{}, Waiting: a.Waiting,
		HeldUp: a.HeldUp, busy: a.Busy, Answered: a.Answered, Dead: a.Dead, path: a.Path, ledger: a.Ledger, consumer: a.Consumer,
	}
	for _, h := range a.Holds {
		h.Since = on(h.Since)
		if !h.ProgressAt.IsZero() {
			h.ProgressAt = on(h.ProgressAt)
		}
		one.Holds = append(one.Holds, holding{h, seconds(now.Sub(h.Since))})
	}
	switch {
	case a.Ended:
		one.State = over
	case a.Lives(put, now) == 0:
		one.State = away
	case a.Drain:
		one.State = draining
	case len(a.Holds) > 0 || a.Busy:
		one.State = working
	case a.HeldUp != "":
		one.State = heldUp
	default:
		one.State = idle
	}
	return one
}

// maxUnclaimed limits how many subjects without a consumer are named.
const maxUnclaimed = 5

// gatherUnclaimed finds subjects that no consumer takes. It asks for them only if consumers do not count all messages.
func (o *common) gatherUnclaimed(ctx context.Context, s *seen, found jetstream.Stream) error {
	claimed := uint64(s.InWork)
	var filters []string
	for _, one := range s.Consumers {
		claimed += one.Waiting
		filters = append(filters, one.Subjects...)
	}
	if s.Messages <= claimed {
		return nil
	}
	info, err := found.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return o.notFound("the stream "+o.stream, err)
	}
	for subject := range info.State.Subjects {
		if !setup.Takes(filters, subject) {
			s.Unclaimed = append(s.Unclaimed, subject)
		}
	}
	slices.Sort(s.Unclaimed)
	s.Unclaimed = s.Unclaimed[:min(len(s.Unclaimed), maxUnclaimed)]
	for _, c := range s.Consumers {
		// What was settled leaves the stream, in a cluster a moment later.
		last := c.info.AckFloor.Last
		isIdle := c.InWork == 0 && c.Waiting == 0 && (last == nil || s.At.Sub(*last) > c.info.Config.AckWait)
		if isIdle && len(s.Unclaimed) == 0 && setup.IsOurs(c.info) && c.info.Delivered.Stream >= info.State.FirstSeq {
			s.passed = c.Name
		}
	}
	if len(s.Unclaimed) > 0 {
		s.forSetup = s.Unclaimed[0]
		// An unreadable message may be gone by now.
		if m, err := found.GetLastMsgForSubject(ctx, s.forSetup); err == nil && m.Header.Get(message.HeaderAfter) != "" {
			s.forSetup = allKeys(s.forSetup)
		}
	}
	return nil
}

func seconds(d time.Duration) float64 { return max(0, d).Round(time.Millisecond).Seconds() }
