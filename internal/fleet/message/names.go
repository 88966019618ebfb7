// Package message defines what the agents of a fleet share on a server: the names of keys, subjects, headers,
// streams, buckets and consumers, how a message becomes an entry of the inbox, and what an agent publishes about
// itself. It sends nothing to a server.
//
// A stream named WORK comes with the bucket WORK-results (the decision about each message, and its answer), the
// bucket WORK-agents (the presence of each agent), the stream WORK-dead (dead letters) and the object store
// WORK-replies (replies too long for a message).
//
// The server grants rights by subject, so the layout of keys is also the layout of permissions. A decision ([Key])
// has no text, and every agent may read it. An answer ([AnswerKey]) has it, and lies under its agent's token.
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
	// HeaderID is the id of a message. Without it, [HeaderMsgID] counts, else [Unnamed].
	HeaderID = "Heartbeat-Id"
	// HeaderMsgID is JetStream's own id, by which it drops a message that was sent twice.
	HeaderMsgID = "Nats-Msg-Id"
	// HeaderReply is the subject for the answer: see [ReplySubject]. A request's own reply subject will not do: the
	// server answers it, and the stream does not keep it.
	HeaderReply = "Heartbeat-Reply"
	// HeaderAfter is the sequence of the previous message with the same key, or 0. The message waits until that one
	// is off the stream. The key is the last token of the subject.
	HeaderAfter = "Heartbeat-After"
	// HeaderAgain counts how often the message's dead letter was requeued: 1, 2, …
	HeaderAgain = "Heartbeat-Again"
)

// MaxID limits the id of a message, in bytes, so that all about it fits into the 64 KiB that a server takes as headers.
const MaxID = 4 << 10

// Metadata of the streams and consumers that setup makes.
const (
	MetaDefault    = "heartbeat_default"     // 1: the consumer of all subjects, which agent may replace
	MetaMaxDeliver = "heartbeat_max_deliver" // how many attempts agents give a message
)

// Bucket names the bucket of results: leases, decisions and answers.
func Bucket(stream string) string { return stream + "-results" }

// Agents names the bucket of agents: their presence, and requests to drain.
func Agents(stream string) string { return stream + "-agents" }

// Dead names the stream of dead letters.
func Dead(stream string) string { return stream + "-dead" }

// Replies names the object store of replies that are too long for a message.
func Replies(stream string) string { return stream + "-replies" }

// Consumer names the durable consumer of a filter subject.
func Consumer(filter string) string { return "hb_" + Key(filter) }

// AnswerKey names the text of one agent's answer in the bucket of results. It is written in one batch with the
// decision under [Key]. An agent may write under its own token, and may read no answer.
func AnswerKey(id, agent string) string { return "answer." + Key(id) + "." + Key(agent) }

// SupersededKey names, in the bucket of results, an agent's outcome that came after another agent's.
func SupersededKey(id, agent string) string { return "superseded." + Key(id) + "." + Key(agent) }

// AgentKey names an agent's [Presence] in the bucket of agents.
func AgentKey(name string) string { return "agent." + Key(name) }

// DrainKey names, in the bucket of agents, the request that an agent drain.
func DrainKey(name string) string { return "drain." + Key(name) }

// LeaseKey names a message's lease in the bucket of results.
func LeaseKey(id string) string { return "lease." + Key(id) }

// DeadSubject is the subject of a message's dead letter. Subjects such as work.> cannot overlap its prefix _hb.
func DeadSubject(stream, id string) string { return "_hb." + stream + ".dead." + Key(id) }

// DeadSubjects matches the dead letters of all messages.
func DeadSubjects(stream string) string { return "_hb." + stream + ".dead.>" }

// ReplySubject is the subject for one answer: any agent may publish there, and none listen. token is long and random.
func ReplySubject(stream, token string) string { return "_hb." + stream + ".reply." + token }

// maxStream leaves room for the suffixes of a stream's name.
const maxStream = 64

// CheckStream refuses a name that does not fit a stream and its buckets.
func CheckStream(name string) error {
	if name == "" {
		return errors.New("the stream has no name: name it with --stream, such as WORK")
	}
	if len(name) > maxStream {
		return fmt.Errorf("the stream's name has %d characters, and may have no more than %d", len(name), maxStream)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !isPlain(r) }) {
		return fmt.Errorf("the stream's name is %q: it takes letters, digits, - and _, since its buckets are named after it", name)
	}
	return nil
}

// maxKey limits an encoded name, in bytes. With a prefix and a second name it stays under a server's 255 bytes.
const maxKey = 160

// Key encodes any id, agent name or filter subject as a key of a bucket and one token of a subject. Letters,
// digits, - and _ stay as they are; each other byte becomes =XX. A result over 160 bytes is replaced by =h and the
// first 32 hex digits of the id's SHA-256. An empty id becomes =e. Different ids have different keys.
func Key(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; isPlain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
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

func isPlain(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

const storedBase = 36

// Unnamed is the id of a message whose headers name none: STREAM:SEQ:STORED. STORED is when the server stored it, in
// microseconds since 1970, in base 36, which tells it from one of the same number before the stream was made anew.
func Unnamed(stream string, seq uint64, stored time.Time) string {
	return Place(stream, seq) + ":" + strconv.FormatUint(uint64(max(0, stored.UnixMicro())), storedBase)
}

// Place is where a message is, for people: STREAM:SEQ.
func Place(stream string, seq uint64) string { return stream + ":" + strconv.FormatUint(seq, 10) }

// IsUnnamed reports whether id is spelt as [Unnamed] spells it. Headers may name such an id only after a requeue.
func IsUnnamed(stream, id string) bool {
	i := strings.LastIndexByte(id, ':')
	return i >= 0 && IsPlace(stream, id[:i]) && isNumber(id[i+1:], storedBase, 63)
}

// IsPlace reports whether id is a [Place] of the stream.
func IsPlace(stream, id string) bool {
	seq, found := strings.CutPrefix(id, stream+":")
	return found && isNumber(seq, 10, 64)
}

// IsAt reports whether id is the [Unnamed] one of the message at this [Place] of the stream.
func IsAt(stream, place, id string) bool {
	return IsPlace(stream, place) && strings.HasPrefix(id, place+":") && IsUnnamed(stream, id)
}

// isNumber reports whether s is a number just as strconv writes it.
func isNumber(s string, base, bits int) bool {
	n, err := strconv.ParseUint(s, base, bits)
	return err == nil && strconv.FormatUint(n, base) == s
}
