package layout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/words"
)

// What agents do where a consumer does not say.
const (
	DefaultMaxDeliver = 5
	DefaultAckWait    = time.Minute
)

// LeastAckWait is the shortest AckWait: agents extend it every third of it, and not more
// often than once a second.
const LeastAckWait = 3 * time.Second

// maxWaiting is how many agents can wait for messages of one consumer. It cannot be changed
// later, and a server's own 512 is less than a fleet may have.
const maxWaiting = 16384

// agentsTTL is how long what agents say of themselves stays, and with it their counts of
// messages that were given back.
const agentsTTL = 30 * 24 * time.Hour

// Wanted is what setup was asked for. Durations of 0 mean for ever.
type Wanted struct {
	Stream      string
	Subjects    []string
	For         []string // filters of consumers; none: one consumer for all subjects
	MaxDeliver  int
	AckWait     time.Duration
	Duplicates  time.Duration
	KeepResults time.Duration
	KeepDead    time.Duration
	Replicas    int
	// Given names, as flags of setup, what was asked for explicitly. The rest holds only
	// for what is made now.
	Given map[string]bool
}

// reserved are subjects that the server and the layout use themselves.
var reserved = []string{"_hb.>", "$JS.>", "$KV.>", "$O.>", "$SYS.>", "_INBOX.>"}

// check refuses what could work on no server.
func (w *Wanted) check() error {
	problems := []error{names.CheckStream(w.Stream)}
	if w.AckWait < LeastAckWait {
		problems = append(problems, fmt.Errorf("--ack-wait is %v: an agent shows every third of it that it is there, at least a second apart, so it takes %v or more", w.AckWait, LeastAckWait))
	}
	if w.Duplicates < 100*time.Millisecond {
		problems = append(problems, fmt.Errorf("--duplicates is %v: a server takes 100ms or more", w.Duplicates))
	}
	for name, d := range map[string]time.Duration{"keep-results": w.KeepResults, "keep-dead": w.KeepDead} {
		if d > 0 && d < w.Duplicates {
			problems = append(problems, fmt.Errorf("--%s is %v, which is less than --duplicates (%v): make it longer", name, d, w.Duplicates))
		}
	}
	for _, subject := range append(w.Subjects[:len(w.Subjects):len(w.Subjects)], w.For...) {
		problems = append(problems, checkSubject(subject))
	}
	return errors.Join(append(problems, overlaps("--subjects", w.Subjects), overlaps("--for", w.For))...)
}

func checkSubject(subject string) error {
	if strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r == 0x7f }) || !names.IsSubject(subject) {
		return fmt.Errorf("%q is no subject: write words with dots between them, and > or * for any, such as work.>", subject)
	}
	for _, r := range reserved {
		if names.Collide(subject, r) {
			return fmt.Errorf("subject %s overlaps %s, which the server or the agents need themselves: choose one such as work.>", subject, r)
		}
	}
	return nil
}

// overlaps refuses two subjects of one list that a message could have both.
func overlaps(flag string, list []string) error {
	for i, a := range list {
		for _, b := range list[:i] {
			if names.Collide(a, b) {
				return fmt.Errorf("%s %s and %[1]s %[3]s overlap: one message would belong to both", flag, b, a)
			}
		}
	}
	return nil
}

// given says whether one of the flags was typed.
func (w *Wanted) given(flag string) bool { return w.Given[flag] }

// inherit takes over what was not asked for from the consumer that makes room for new ones.
func (w *Wanted) inherit(c *jetstream.ConsumerConfig) {
	if !w.given("ack-wait") {
		w.AckWait = max(c.AckWait, LeastAckWait)
	}
	if !w.given("max-deliver") {
		w.MaxDeliver = MaxDeliver(c)
	}
}

// subjects are those of a stream that is made now.
func (w *Wanted) subjects() []string {
	if len(w.Subjects) > 0 {
		return w.Subjects
	}
	return []string{strings.ToLower(w.Stream) + ".>"}
}

// lasting spells how long something is kept.
func lasting(d time.Duration) string {
	if d <= 0 {
		return "for ever"
	}
	return words.Took(d)
}
