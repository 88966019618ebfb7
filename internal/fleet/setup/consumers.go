package setup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

const (
	// DefaultMaxDeliver and DefaultAckWait apply where a consumer names none.
	DefaultMaxDeliver = 5
	DefaultAckWait    = message.DefaultAckWait
	// LeastAckWait is the shortest AckWait. Agents extend it every third of its time, at most once a second.
	LeastAckWait = 3 * time.Second
	// maxWaiting is how many agents can wait for messages of one consumer. A consumer cannot change it later, and a
	// server's default of 512 is too few for a fleet.
	maxWaiting = 16384
	// everything is the filter of a consumer that takes all of a stream's several subjects.
	everything = ">"
)

// consumers plans the consumers of a stream that will have the configuration c.
func (p *Plan) consumers(ctx context.Context, c *jetstream.StreamConfig) error {
	_, there, err := Consumers(ctx, p.js, c.Name)
	if err != nil {
		return err
	}
	filters := p.w.For
	if len(filters) == 0 && !slices.ContainsFunc(there, IsOurs) {
		filters = []string{whole(c.Subjects)}
	}
	for _, f := range filters {
		if f != everything && len(uncovered([]string{f}, c.Subjects)) > 0 {
			p.refuse("--for %s is not among the subjects of stream %s, which takes %s", f, c.Name, strings.Join(c.Subjects, ", "))
		}
	}
	ackWait, maxDeliver := p.w.AckWait, p.w.MaxDeliver
	for _, i := range there {
		if isDefault(i) { // from which new consumers inherit what was not asked for
			if !p.w.Given["ack-wait"] {
				ackWait = max(i.Config.AckWait, LeastAckWait)
			}
			if !p.w.Given["max-deliver"] {
				maxDeliver = MaxDeliver(&i.Config)
			}
		}
		filters = p.consumer(c, i, filters)
	}
	for _, f := range filters {
		config := consumerConfig(f, ackWait, maxDeliver, len(p.w.For) == 0)
		config.PauseUntil = pausedUntil(there)
		p.ackWait = max(p.ackWait, ackWait)
		p.add(&Step{Kind: "consumer", Name: config.Durable, Action: Create, Is: consumerIs(&config)}, func(ctx context.Context) error {
			_, err := p.js.CreateConsumer(ctx, c.Name, config)
			return err
		})
	}
	taken := slices.Clone(filters)
	for _, i := range there {
		if !slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Kind == "consumer" && s.Name == i.Name && s.Action == Remove }) {
			taken = append(taken, Filters(&i.Config)...)
			if isDefault(i) { // a step may make it take more than now
				taken = append(taken, everything)
			}
		}
	}
	if open := uncovered(c.Subjects, taken); len(open) > 0 {
		p.Steps[0].Notes = append(p.Steps[0].Notes, fmt.Sprintf(
			"its consumers take %s and not all of %s: other messages wait until there is a consumer for them", strings.Join(taken, ", "), strings.Join(open, ", ")))
	}
	return nil
}

// pausedUntil returns when the pause of agents' consumers ends, or nil unless all are paused.
func pausedUntil(there []*jetstream.ConsumerInfo) (until *time.Time) {
	for _, i := range there {
		switch {
		case !IsOurs(i):
		case !i.Paused:
			return nil
		default:
			until = i.Config.PauseUntil
		}
	}
	return until
}

// Consumers returns a stream, or nil if there is none, and its consumers, sorted by name.
func Consumers(ctx context.Context, js jetstream.JetStream, stream string) (s jetstream.Stream, all []*jetstream.ConsumerInfo, err error) {
	s, err = findStream(ctx, js, stream)
	if s == nil || err != nil {
		return nil, nil, err
	}
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.AckPolicy != jetstream.AckFlowControlPolicy { // a mirror's, which takes nothing off the stream
			all = append(all, info)
		}
	}
	if err := list.Err(); err != nil {
		return nil, nil, fmt.Errorf("list the consumers of the stream %s: %w", stream, err)
	}
	slices.SortFunc(all, func(a, b *jetstream.ConsumerInfo) int { return strings.Compare(a.Name, b.Name) })
	return s, all, nil
}

// whole returns the filter that takes all subjects of a stream.
func whole(subjects []string) string {
	if len(subjects) == 1 {
		return subjects[0]
	}
	return everything
}

// IsOurs reports whether a consumer is for agents, by its name.
func IsOurs(i *jetstream.ConsumerInfo) bool { return strings.HasPrefix(i.Name, "hb_") }

func isDefault(i *jetstream.ConsumerInfo) bool { return i.Config.Metadata[message.MetaDefault] == "1" }

// Filters returns the subjects that a consumer takes, at least one.
func Filters(c *jetstream.ConsumerConfig) []string {
	switch {
	case len(c.FilterSubjects) > 0:
		return c.FilterSubjects
	case c.FilterSubject != "":
		return []string{c.FilterSubject}
	}
	return []string{everything}
}

// MaxDeliver returns how many attempts agents make at a message of a consumer.
func MaxDeliver(c *jetstream.ConsumerConfig) int {
	if n, err := strconv.Atoi(c.Metadata[message.MetaMaxDeliver]); err == nil && n > 0 {
		return n
	}
	return DefaultMaxDeliver
}

func consumerConfig(filter string, ackWait time.Duration, maxDeliver int, isDefault bool) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable: message.Consumer(filter), Description: "agents of heartbeat-nats for " + filter,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: -1, MaxWaiting: maxWaiting,
		Metadata: map[string]string{message.MetaMaxDeliver: strconv.Itoa(maxDeliver)},
	}
	if filter != everything {
		c.FilterSubject = filter
	}
	if isDefault {
		c.Metadata[message.MetaDefault] = "1"
	}
	return c
}

func consumerIs(c *jetstream.ConsumerConfig) string {
	return fmt.Sprintf("agents for %s: %d attempts, another agent after %s", strings.Join(Filters(c), ", "), MaxDeliver(c), words.Took(c.AckWait))
}

// consumer plans what becomes of an existing consumer, and returns the filters that still need one.
func (p *Plan) consumer(c *jetstream.StreamConfig, i *jetstream.ConsumerInfo, filters []string) []string {
	config := i.Config
	own := Filters(&config)
	takes := strings.Join(own, ", ")
	if !IsOurs(i) {
		for _, f := range filters {
			if collide(own, f) {
				p.refuse("consumer %s of stream %s takes %s already, and a message belongs to one consumer: remove that one, or leave %s out", i.Name, c.Name, takes, f)
			}
		}
		return filters
	}
	s := &Step{Kind: "consumer", Name: i.Name}
	if slices.Contains(filters, own[0]) && len(own) == 1 {
		filters = slices.DeleteFunc(slices.Clone(filters), func(f string) bool { return f == own[0] })
	} else if at := slices.IndexFunc(filters, func(f string) bool { return collide(own, f) }); at >= 0 {
		// The default consumer makes room for others, but only while no agent waits and no message is out.
		switch {
		case !isDefault(i):
			p.refuse("consumer %s takes %s already, and a message belongs to one consumer: remove it while no agent runs (nats consumer rm %s %[1]s), or leave --for %[4]s out", i.Name, takes, c.Name, filters[at])
		case i.NumAckPending > 0 || i.NumWaiting > 0:
			p.refuse("agents work for the consumer of all subjects (%d messages are out, %d agents wait): drain them, and then make one for %s", i.NumAckPending, i.NumWaiting, filters[at])
		default:
			s.Action, s.Is = Remove, "agents for "+takes
			p.add(s, func(ctx context.Context) error { return p.js.DeleteConsumer(ctx, c.Name, i.Name) })
		}
		return filters
	}
	p.refusals = append(p.refusals, unfit(i))
	p.compare(s, &config, c)
	p.ackWait = max(p.ackWait, config.AckWait)
	s.Is = consumerIs(&config)
	if config.MaxWaiting < maxWaiting {
		s.Notes = append(s.Notes, fmt.Sprintf("only %d agents can wait for its messages at once, which cannot be changed: remove it while no agent runs, and run setup again", config.MaxWaiting))
	}
	p.add(s, func(ctx context.Context) error { _, err := p.js.UpdateConsumer(ctx, c.Name, config); return err })
	return filters
}

// unfit returns why agents cannot work with a consumer, if setup cannot change that.
func unfit(i *jetstream.ConsumerInfo) error {
	c := &i.Config
	const remove = "remove it while no agent runs, and run setup again"
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		return fmt.Errorf("consumer %s does not wait until each message is acknowledged: %s", i.Name, remove)
	case c.DeliverSubject != "":
		return fmt.Errorf("consumer %s pushes messages, and agents pull them: %s", i.Name, remove)
	case c.PriorityPolicy != jetstream.PriorityPolicyNone:
		return fmt.Errorf("consumer %s has priority groups, which agents do not know: %s", i.Name, remove)
	}
	return nil
}

// compare changes the configuration of a consumer where that differs, and notes how.
func (p *Plan) compare(s *Step, config *jetstream.ConsumerConfig, c *jetstream.StreamConfig) {
	if takes := Filters(config); config.Metadata[message.MetaDefault] == "1" && takes[0] != everything && !sameSet(takes, []string{whole(c.Subjects)}) {
		// Everything, to hand out also messages of subjects that the stream no longer takes.
		s.Differs = append(s.Differs, fmt.Sprintf("it takes %s and will take %s", strings.Join(takes, ", "), everything))
		config.FilterSubjects, config.FilterSubject = nil, ""
	}
	before := len(s.Differs)
	differ(s, p.w.Given["ack-wait"] || config.AckWait < LeastAckWait, "AckWait", &config.AckWait, p.w.AckWait)
	attempts := MaxDeliver(config)
	if differ(s, p.w.Given["max-deliver"], "the number of attempts", &attempts, p.w.MaxDeliver); attempts != MaxDeliver(config) {
		if config.Metadata == nil {
			config.Metadata = map[string]string{}
		}
		config.Metadata[message.MetaMaxDeliver] = strconv.Itoa(attempts)
	}
	if len(s.Differs) > before {
		s.Notes = append(s.Notes, "agents that run go by what it was until they start again")
	}
	copies := fmt.Sprintf("the server stops after %d copies and will not: agents count attempts, and make a dead letter", config.MaxDeliver)
	change(s, config.MaxDeliver != -1, copies, &config.MaxDeliver, -1)
	most := fmt.Sprintf("it has at most %d out at a time, those that were given back until later among them, and will have any number", config.MaxAckPending)
	change(s, config.MaxAckPending > 0, most, &config.MaxAckPending, -1)
	change(s, len(config.BackOff) > 0, "it has back-off times of its own, and AckWait will hold", &config.BackOff, nil)
	change(s, config.MaxRequestExpires > 0, fmt.Sprintf("it refuses who asks for longer than %v, as agents do, and will not", config.MaxRequestExpires), &config.MaxRequestExpires, 0)
	change(s, config.HeadersOnly, "it gives headers alone, and will give whole messages", &config.HeadersOnly, false)
}

func collide(own []string, filter string) bool {
	return slices.ContainsFunc(own, func(o string) bool { return server.SubjectsCollide(o, filter) })
}

// SubjectsFlags returns the flags by which setup has a stream take these subjects, and no others.
func SubjectsFlags(subjects []string) (flags []string) {
	for _, s := range subjects {
		flags = append(flags, "--subjects", s)
	}
	return flags
}

// Consumer returns the consumer for the subject, or the default one. Without either, the error says how to make one.
func Consumer(ctx context.Context, js jetstream.JetStream, stream, subject string) (jetstream.Consumer, error) {
	if err := TooOld(js); err != nil {
		return nil, err
	}
	if err := CheckSubject(subject); err != nil && subject != everything {
		return nil, err
	}
	s, there, err := Consumers(ctx, js, stream)
	if err == nil && s == nil {
		return nil, missing(js, stream, "stream "+stream)
	}
	if err != nil {
		return nil, err
	}
	takes := s.CachedInfo().Config.Subjects
	isAll := len(uncovered(takes, []string{subject})) == 0
	var filters []string
	for _, i := range there {
		if i.Name == message.Consumer(subject) || isAll && isDefault(i) {
			if err := unfit(i); err != nil {
				return nil, err
			}
			if i.Config.AckWait < LeastAckWait {
				return nil, fmt.Errorf("consumer %s has an AckWait of %v, and agents need %v or more: %s changes that", i.Name, i.Config.AckWait, LeastAckWait, Command(js, stream, "--ack-wait", "60s"))
			}
			c, err := js.Consumer(ctx, stream, i.Name)
			if err != nil {
				return nil, fmt.Errorf("look at the consumer of %s: %w", subject, err)
			}
			return c, nil
		}
		if IsOurs(i) {
			filters = append(filters, Filters(&i.Config)...)
		}
	}
	switch {
	case len(uncovered([]string{subject}, takes)) > 0 && !isAll:
		return nil, fmt.Errorf("stream %s takes %s, which has not all of %s: name a subject of that stream, or have it take that too: %s", stream, strings.Join(takes, ", "), subject, Command(js, stream, SubjectsFlags(append(takes, subject))...))
	case !isAll:
		return nil, fmt.Errorf("stream %s has no consumer for %s alone: %s makes one", stream, subject, Command(js, stream, "--for", subject))
	case len(filters) == 0:
		return nil, fmt.Errorf("stream %s has no consumer: %s makes one", stream, Command(js, stream))
	}
	return nil, fmt.Errorf("stream %s has no consumer for all of %s: name what one of its consumers takes with --subject: %s", stream, subject, strings.Join(filters, ", "))
}
