package names

import (
	"errors"
	"fmt"
)

// Headers of messages.
const (
	// HeaderID is the id of a message; without it that is [HeaderMsgID], else [Message].
	HeaderID = "Heartbeat-Id"
	// HeaderMsgID is JetStream's own, by which it drops a message that was sent twice.
	HeaderMsgID = "Nats-Msg-Id"
	// HeaderReply is the subject to which the answer goes: see [Reply]. A stream does not
	// keep the reply subject of a request, since the server itself answers that.
	HeaderReply = "Heartbeat-Reply"
	// HeaderAgain is how often the message's dead letter was requeued: 1, 2, …
	HeaderAgain = "Heartbeat-Again"
)

// MaxID is how many bytes a message's id may have: with all that is told of the message it
// stays far under the 64 KiB that a server takes for headers.
const MaxID = 4 << 10

// Metadata of streams and consumers that setup makes.
const (
	MetaDefault    = "heartbeat_default"     // 1: the consumer of all subjects, which agent may replace
	MetaMaxDeliver = "heartbeat_max_deliver" // how many attempts agents give a message
)

// Bucket is the bucket of results: a decision for each message that was settled, and the
// answers.
func Bucket(stream string) string { return stream + "-results" }

// Agents is the bucket of what agents say of themselves.
func Agents(stream string) string { return stream + "-agents" }

// Dead is the stream of dead letters.
func Dead(stream string) string { return stream + "-dead" }

// Replies is the object store of replies that are too long for a message.
func Replies(stream string) string { return stream + "-replies" }

// Consumer is the durable consumer of a filter subject.
func Consumer(filter string) string { return "hb_" + Token(filter) }

// Answer is the key, in the bucket of results, of the text of one agent's answer. It is
// written before the decision under [Key] is created. Agents may write those of their own
// token, and may read no others.
func Answer(id, agent string) string { return "answer." + Key(id) + "." + Token(agent) }

// Superseded is the key, in the bucket of results, of what an agent answered that was not
// the first.
func Superseded(id, agent string) string { return "superseded." + Key(id) + "." + Token(agent) }

// Agent is the key, in the bucket of agents, of what an agent says of itself.
func Agent(name string) string { return "agent." + Token(name) }

// Drain is the key, in the bucket of agents, that asks an agent to finish and take no
// more.
func Drain(name string) string { return "drain." + Token(name) }

// Nak is the key, in the bucket of agents, of how often a message was given back.
func Nak(id string) string { return "nak." + Key(id) }

// DeadSubject is the subject of a message's dead letter. It begins with _hb, so that
// subjects such as work.> cannot overlap it.
func DeadSubject(stream, id string) string { return "_hb." + stream + ".dead." + Key(id) }

// DeadSubjects are all of them.
func DeadSubjects(stream string) string { return "_hb." + stream + ".dead.>" }

// Reply is the subject to which the answer to one message goes. token is random, and so
// long that nobody guesses it: agents may publish to every such subject, and may listen to
// none.
func Reply(stream, token string) string { return "_hb." + stream + ".reply." + token }

// maxStream leaves room for what is put behind the name.
const maxStream = 64

// CheckStream refuses a name that cannot be that of a stream and of its buckets.
func CheckStream(name string) error {
	if name == "" {
		return errors.New("the stream has no name: name it with --stream, such as WORK")
	}
	if len(name) > maxStream {
		return fmt.Errorf("the stream's name has %d characters, and may have no more than %d", len(name), maxStream)
	}
	for i := range len(name) {
		if !plain(name[i]) {
			return fmt.Errorf("the stream's name is %q: it takes letters, digits, - and _, since its buckets are named after it", name)
		}
	}
	return nil
}
