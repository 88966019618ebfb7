package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/words"
)

// everything is the filter of a consumer that takes all subjects of a stream with several.
const everything = ">"

// consumers plans the consumers of a stream that will have the configuration c.
func (p *Plan) consumers(ctx context.Context, js jetstream.JetStream, w *Wanted, c *jetstream.StreamConfig, no *refusals) error {
	there, err := consumersOf(ctx, js, c.Name)
	if err != nil {
		return err
	}
	filters := w.For
	if len(filters) == 0 && !slices.ContainsFunc(there, isOurs) {
		filters = []string{whole(c.Subjects)}
	}
	for _, f := range filters {
		if f != everything && len(uncovered([]string{f}, c.Subjects)) > 0 {
			no.add("--for %s is not among the subjects of stream %s, which takes %s", f, c.Name, strings.Join(c.Subjects, ", "))
		}
	}
	asked := *w
	for _, i := range there {
		if isDefault(i) {
			asked.inherit(&i.Config)
		}
		filters = p.consumer(js, w, c, i, filters, no)
	}
	for _, f := range filters {
		p.newConsumer(js, &asked, c, f, len(w.For) == 0)
	}
	p.noteUncovered(c, there, filters)
	return nil
}

// consumersOf lists the consumers of a stream that may not be there.
func consumersOf(ctx context.Context, js jetstream.JetStream, stream string) (all []*jetstream.ConsumerInfo, err error) {
	s, err := js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the consumers of stream %s: %w", stream, err)
	}
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		all = append(all, info)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("look at the consumers of stream %s: %w", stream, err)
	}
	slices.SortFunc(all, func(a, b *jetstream.ConsumerInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// whole is the filter that takes all subjects of a stream.
func whole(subjects []string) string {
	if len(subjects) == 1 {
		return subjects[0]
	}
	return everything
}

func isOurs(i *jetstream.ConsumerInfo) bool { return strings.HasPrefix(i.Name, "hb_") }

func isDefault(i *jetstream.ConsumerInfo) bool { return i.Config.Metadata[names.MetaDefault] == "1" }

// idle reports whether nobody waits for the consumer and nobody works on what it gave.
func idle(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 && i.NumWaiting == 0 }

// filtersOf are the subjects that a consumer takes: one or several.
func filtersOf(c *jetstream.ConsumerConfig) []string {
	switch {
	case len(c.FilterSubjects) > 0:
		return c.FilterSubjects
	case c.FilterSubject != "":
		return []string{c.FilterSubject}
	}
	return []string{everything}
}

// MaxDeliver is how many attempts agents give a message of a consumer.
func MaxDeliver(c *jetstream.ConsumerConfig) int {
	if n, err := strconv.Atoi(c.Metadata[names.MetaMaxDeliver]); err == nil && n > 0 {
		return n
	}
	return DefaultMaxDeliver
}

// consumerConfig is a consumer of one filter, as agents need it.
func consumerConfig(filter string, ackWait time.Duration, maxDeliver int, isDefault bool) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable: names.Consumer(filter), Description: "agents of heartbeat-nats for " + filter,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: -1, MaxWaiting: maxWaiting,
		Metadata: map[string]string{names.MetaMaxDeliver: strconv.Itoa(maxDeliver)},
	}
	if filter != everything {
		c.FilterSubject = filter
	}
	if isDefault {
		c.Metadata[names.MetaDefault] = "1"
	}
	return c
}

func (p *Plan) newConsumer(js jetstream.JetStream, w *Wanted, c *jetstream.StreamConfig, filter string, isDefault bool) {
	config := consumerConfig(filter, w.AckWait, w.MaxDeliver, isDefault)
	s := &Step{Kind: "consumer", Name: config.Durable, Action: Create, Is: consumerIs(&config)}
	p.add(s, func(ctx context.Context) error {
		_, err := js.CreateConsumer(ctx, c.Name, config)
		return err
	})
}

func consumerIs(c *jetstream.ConsumerConfig) string {
	return fmt.Sprintf("agents for %s: %d attempts, another agent after %s", strings.Join(filtersOf(c), ", "), MaxDeliver(c), words.Took(c.AckWait))
}

// consumer plans one that is there, and returns the filters that still need one.
func (p *Plan) consumer(js jetstream.JetStream, w *Wanted, c *jetstream.StreamConfig, i *jetstream.ConsumerInfo, filters []string, no *refusals) []string {
	config := i.Config
	own := filtersOf(&config)
	if !isOurs(i) {
		for _, f := range filters {
			if collide(own, f) {
				no.add("consumer %s of stream %s takes %s already, and a message belongs to one consumer: remove that one, or leave %s out", i.Name, c.Name, strings.Join(own, ", "), f)
			}
		}
		return filters
	}
	s := &Step{Kind: "consumer", Name: i.Name}
	if slices.Contains(filters, own[0]) && len(own) == 1 {
		filters = slices.DeleteFunc(slices.Clone(filters), func(f string) bool { return f == own[0] })
	} else if f := collision(own, filters); f != "" {
		p.replace(js, c, i, f, no)
		return filters
	}
	refuseConsumer(i, no)
	differingConsumer(s, &config, w, c)
	s.Is = consumerIs(&config)
	if config.MaxWaiting < maxWaiting {
		s.Notes = append(s.Notes, fmt.Sprintf("only %d agents can wait for its messages at once, which cannot be changed: remove it while no agent runs, and run setup again", config.MaxWaiting))
	}
	p.add(s, func(ctx context.Context) error { _, err := js.UpdateConsumer(ctx, c.Name, config); return err })
	return filters
}

// replace plans that the consumer of all subjects makes room for others, if it is idle.
func (p *Plan) replace(js jetstream.JetStream, c *jetstream.StreamConfig, i *jetstream.ConsumerInfo, filter string, no *refusals) {
	own := strings.Join(filtersOf(&i.Config), ", ")
	switch {
	case !isDefault(i):
		no.add("consumer %s takes %s already, and a message belongs to one consumer: remove it while no agent runs (nats consumer rm %s %[1]s), or leave --for %[4]s out", i.Name, own, c.Name, filter)
		return
	case !idle(i):
		no.add("agents work for the consumer of all subjects (%d messages are out, %d agents wait): drain them, and then make one for %s", i.NumAckPending, i.NumWaiting, filter)
		return
	}
	s := &Step{Kind: "consumer", Name: i.Name, Action: Remove, Is: "agents for " + own}
	p.add(s, func(ctx context.Context) error { return js.DeleteConsumer(ctx, c.Name, i.Name) })
}

func refuseConsumer(i *jetstream.ConsumerInfo, no *refusals) {
	c := &i.Config
	const remove = "remove it while no agent runs, and run setup again"
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		no.add("consumer %s does not wait until each message is acknowledged: %s", i.Name, remove)
	case c.DeliverSubject != "":
		no.add("consumer %s pushes messages, and agents pull them: %s", i.Name, remove)
	case c.PriorityPolicy != jetstream.PriorityPolicyNone:
		no.add("consumer %s has priority groups, which agents do not know: %s", i.Name, remove)
	}
}

// differingConsumer notes what differs, and changes it in config.
func differingConsumer(s *Step, config *jetstream.ConsumerConfig, w *Wanted, c *jetstream.StreamConfig) {
	if isDefault(&jetstream.ConsumerInfo{Config: *config}) && !sameSet(filtersOf(config), []string{whole(c.Subjects)}) {
		s.Differs = append(s.Differs, fmt.Sprintf("it takes %s and will take %s", strings.Join(filtersOf(config), ", "), whole(c.Subjects)))
		config.FilterSubjects, config.FilterSubject = nil, whole(c.Subjects)
		if config.FilterSubject == everything {
			config.FilterSubject = ""
		}
	}
	if differ(s, w.given("ack-wait") || config.AckWait < LeastAckWait, "AckWait", config.AckWait, w.AckWait) {
		config.AckWait = w.AckWait
	}
	if differ(s, w.given("max-deliver"), "the number of attempts", MaxDeliver(config), w.MaxDeliver) {
		if config.Metadata == nil {
			config.Metadata = map[string]string{}
		}
		config.Metadata[names.MetaMaxDeliver] = strconv.Itoa(w.MaxDeliver)
	}
	if config.MaxDeliver != -1 {
		s.Differs = append(s.Differs, fmt.Sprintf("the server stops after %d copies and will not: agents count attempts, and make a dead letter", config.MaxDeliver))
		config.MaxDeliver = -1
	}
	if len(config.BackOff) > 0 {
		s.Differs = append(s.Differs, "it has back-off times of its own, and AckWait will hold")
		config.BackOff = nil
	}
	if config.HeadersOnly {
		s.Differs = append(s.Differs, "it gives headers alone, and will give whole messages")
		config.HeadersOnly = false
	}
}

// noteUncovered says of which subjects nobody will take messages.
func (p *Plan) noteUncovered(c *jetstream.StreamConfig, there []*jetstream.ConsumerInfo, filters []string) {
	filters = slices.Clone(filters)
	for _, i := range there {
		if !slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Kind == "consumer" && s.Name == i.Name && s.Action == Remove }) {
			filters = append(filters, filtersOf(&i.Config)...)
		}
	}
	if open := uncovered(c.Subjects, filters); len(open) > 0 {
		p.Steps[0].Notes = append(p.Steps[0].Notes, fmt.Sprintf(
			"its consumers take %s and not all of %s: other messages wait until there is a consumer for them", strings.Join(filters, ", "), strings.Join(open, ", ")))
	}
}

// collision is one of the filters with which a consumer would share messages, or nothing.
func collision(own, filters []string) string {
	for _, f := range filters {
		if collide(own, f) {
			return f
		}
	}
	return ""
}

func collide(own []string, filter string) bool {
	return slices.ContainsFunc(own, func(o string) bool { return names.Collide(o, filter) })
}
