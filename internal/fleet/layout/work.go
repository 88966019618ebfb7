package layout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// work plans the stream of messages. The configuration is that which the stream will have.
func (p *Plan) work(ctx context.Context, js jetstream.JetStream, w *Wanted, no *refusals) (*jetstream.StreamConfig, error) {
	info, err := found(ctx, js, w.Stream)
	if err != nil {
		return nil, err
	}
	s := &Step{Kind: "stream", Name: w.Stream}
	if info == nil {
		c := newWork(w)
		s.Action, s.Is = Create, workIs(c)
		p.add(s, func(ctx context.Context) error { _, err := js.CreateStream(ctx, *c); return err })
		return c, takenSubjects(ctx, js, c, no)
	}
	c := info.Config
	refuseWork(&c, no)
	differingWork(s, &c, w)
	s.Is, s.Notes = workIs(&c), losses(&c)
	p.add(s, func(ctx context.Context) error { _, err := js.UpdateStream(ctx, c); return err })
	return &c, takenSubjects(ctx, js, &c, no)
}

func newWork(w *Wanted) *jetstream.StreamConfig {
	return &jetstream.StreamConfig{
		Name: w.Stream, Description: "messages for the agents of heartbeat-nats", Subjects: w.subjects(),
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		Duplicates: w.Duplicates, Replicas: w.Replicas,
	}
}

func workIs(c *jetstream.StreamConfig) string {
	return "messages of " + strings.Join(c.Subjects, ", ")
}

// refuseWork says what agents cannot work with, and setup cannot change.
func refuseWork(c *jetstream.StreamConfig, no *refusals) {
	const other = "use another name with --stream, or remove it if its messages are not needed"
	if c.Mirror != nil || len(c.Sources) > 0 {
		no.add("stream %s gets its messages from another stream: what is settled here would stay there: run setup on that one, or %s", c.Name, other)
	}
	if c.Retention != jetstream.WorkQueuePolicy {
		no.add("stream %s keeps messages by %s, and not until they are settled, as a work queue does: %s", c.Name, strings.ToLower(c.Retention.String()), other)
	}
	if c.Storage != jetstream.FileStorage {
		no.add("stream %s keeps its messages in memory, where a restart of the server loses them: %s", c.Name, other)
	}
	if c.NoAck {
		no.add("stream %s does not acknowledge what is sent, so nobody knows whether it arrived: %s", c.Name, other)
	}
	if c.PersistMode != jetstream.DefaultPersistMode {
		no.add("stream %s acknowledges messages before they are in its files: %s", c.Name, other)
	}
	if c.Sealed {
		no.add("stream %s is sealed: nothing can be sent to it, and nothing settled: %s", c.Name, other)
	}
}

// differingWork notes what differs from what was asked for, and changes it in c.
func differingWork(s *Step, c *jetstream.StreamConfig, w *Wanted) {
	if w.given("subjects") && !sameSet(c.Subjects, w.Subjects) {
		s.Differs = append(s.Differs, fmt.Sprintf("it takes %s and will take %s", strings.Join(c.Subjects, ", "), strings.Join(w.Subjects, ", ")))
		c.Subjects = w.Subjects
	}
	if differ(s, w.given("duplicates"), "the window for duplicates", c.Duplicates, w.Duplicates) {
		c.Duplicates = w.Duplicates
	}
	if differ(s, w.given("replicas"), "the number of replicas", c.Replicas, w.Replicas) {
		c.Replicas = w.Replicas
	}
	if c.Discard != jetstream.DiscardNew && c.MaxAge == 0 {
		s.Differs = append(s.Differs, "when it is full it drops old messages, and will refuse new ones")
		c.Discard = jetstream.DiscardNew
	}
}

// losses are limits by which messages go without an answer.
func losses(c *jetstream.StreamConfig) (notes []string) {
	if c.MaxAge > 0 {
		notes = append(notes, fmt.Sprintf("it drops messages that are older than %v, answered or not: nats stream edit %s --max-age 0 stops that", c.MaxAge, c.Name))
	}
	if c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject {
		notes = append(notes, fmt.Sprintf("it keeps only %d messages of a subject and drops older ones, answered or not: nats stream edit %s --max-msgs-per-subject -1 stops that", c.MaxMsgsPerSubject, c.Name))
	}
	return notes
}

// takenSubjects refuses subjects that another stream takes.
func takenSubjects(ctx context.Context, js jetstream.JetStream, c *jetstream.StreamConfig, no *refusals) error {
	for _, subject := range c.Subjects {
		list := js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for name := range list.Name() {
			if name != c.Name {
				if strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_") {
					no.add("stream %s takes %s, or some of it, which agents need themselves: use another name with --stream, or take that subject from it", name, subject)
					continue
				}
				no.add("stream %s takes %s, or some of it: name subjects that no other stream has with --subjects, or use that stream with --stream %[1]s", name, subject)
			}
		}
		if err := list.Err(); err != nil {
			return fmt.Errorf("look for other streams that take %s: %w", subject, err)
		}
	}
	return nil
}

// uncovered are the subjects of a stream of which no filter takes all.
func uncovered(subjects, filters []string) (open []string) {
	for _, s := range subjects {
		if !slices.ContainsFunc(filters, func(f string) bool { return names.Covers(f, s) }) {
			open = append(open, s)
		}
	}
	return open
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
