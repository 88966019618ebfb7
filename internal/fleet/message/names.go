// Package message is what the agents of a fleet share on a server: the names of keys,
// subjects, headers, streams, buckets and consumers, how a message becomes an entry of the
// inbox, and what an agent says of itself. It asks no server.
//
// A stream named WORK has beside it the bucket WORK-results (who was first to settle a
// message), the bucket WORK-agents (what each agent says of itself), the stream WORK-dead
// (dead letters) and the object store WORK-replies (replies too long for a message).
//
// What roles may do is told apart by subjects, so the layout of keys is also the layout of
// permissions: a decision ([Key]) has no text and may be read by every agent, an answer
// ([AnswerKey]) has the text and is written under its agent's own token.
package message

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of messages.
const (
	// HeaderID is the id of a message; without it that is [HeaderMsgID], else [Unnamed].
	HeaderID = "Heartbeat-Id"
	// HeaderMsgID is JetStream's own, by which it drops a message that was sent twice.
	HeaderMsgID = "Nats-Msg-Id"
	// HeaderReply is the subject to which the answer goes: see [ReplySubject]. A stream does not
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
func Consumer(filter string) string { return "hb_" + Key(filter) }

// AnswerKey is the key, in the bucket of results, of the text of one agent's answer. It is
// written before the decision under [Key] is created. Agents may write those of their own
// token, and may read no others.
func AnswerKey(id, agent string) string { return "answer." + Key(id) + "." + Key(agent) }

// SupersededKey is the key, in the bucket of results, of what an agent answered that was not
// the first.
func SupersededKey(id, agent string) string { return "superseded." + Key(id) + "." + Key(agent) }

// AgentKey is the key, in the bucket of agents, of what an agent says of itself.
func AgentKey(name string) string { return "agent." + Key(name) }

// DrainKey is the key, in the bucket of agents, that asks an agent to finish and take no
// more.
func DrainKey(name string) string { return "drain." + Key(name) }

// NakKey is the key, in the bucket of agents, of how often a message was given back.
func NakKey(id string) string { return "nak." + Key(id) }

// DeadSubject is the subject of a message's dead letter. It begins with _hb, so that
// subjects such as work.> cannot overlap it.
func DeadSubject(stream, id string) string { return "_hb." + stream + ".dead." + Key(id) }

// DeadSubjects are all of them.
func DeadSubjects(stream string) string { return "_hb." + stream + ".dead.>" }

// ReplySubject is the subject to which the answer to one message goes. token is random, and so
// long that nobody guesses it: agents may publish to every such subject, and may listen to
// none.
func ReplySubject(stream, token string) string { return "_hb." + stream + ".reply." + token }

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

// maxKey is how many bytes an encoded name may have: with a prefix and a second name it
// stays under the 255 bytes that a server takes for a consumer.
const maxKey = 160

const upperHex = "0123456789ABCDEF"

// Key is a message's id, the name of an agent, or a filter subject, of any bytes, as a key of a
// bucket and as one token of a subject: letters, digits, - and _ as they are, each other byte
// as =XX. An id that gets longer than 160 bytes by that is =h and the first 32 hex digits of
// its SHA-256, and no id at all is =e. Different ids have different keys.
func Key(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', upperHex[c>>4], upperHex[c&15]})
		}
		if b.Len() > maxKey {
			sum := sha256.Sum256([]byte(id))
			return "=h" + hex.EncodeToString(sum[:16])
		}
	}
	if b.Len() == 0 {
		return "=e"
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// storedBase spells the time in a message's id.
const storedBase = 36

// Unnamed is the id of a message whose headers name none: STREAM:SEQ:STORED. STORED is when
// the server stored it, in microseconds since 1970 to the base of 36. A stream that is
// deleted and made anew counts from 1 again; the time tells its messages from the ones that
// had their sequences before.
func Unnamed(stream string, seq uint64, stored time.Time) string {
	return Place(stream, seq) + ":" + strconv.FormatUint(uint64(max(0, stored.UnixMicro())), storedBase)
}

// Place is where a message is, for people: STREAM:SEQ.
func Place(stream string, seq uint64) string { return stream + ":" + strconv.FormatUint(seq, 10) }

// IsUnnamed reports whether an id is spelt as [Unnamed] spells those of the stream. Headers
// do not name such an id, but that of a message which was requeued.
func IsUnnamed(stream, id string) bool {
	place, stored, found := cutLast(id)
	if !found || !IsPlace(stream, place) {
		return false
	}
	n, err := strconv.ParseUint(stored, storedBase, 63)
	return err == nil && strconv.FormatUint(n, storedBase) == stored
}

// IsPlace reports whether an id is a [Place] of the stream.
func IsPlace(stream, id string) bool {
	before, seq, found := cutLast(id)
	n, err := strconv.ParseUint(seq, 10, 64)
	return found && before == stream && err == nil && strconv.FormatUint(n, 10) == seq
}

// IsAt reports whether an id is that of a message, without one in its headers, which had
// this [Place] of the stream.
func IsAt(stream, place, id string) bool {
	before, _, _ := cutLast(id)
	return before == place && IsUnnamed(stream, id)
}

func cutLast(id string) (before, after string, found bool) {
	i := strings.LastIndexByte(id, ':')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}
