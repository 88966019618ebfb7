// Package names spells what the agents of a fleet share on a server: keys, subjects,
// headers, and the names of streams, buckets and consumers. It is pure.
//
// A stream named WORK has beside it the bucket WORK-results (who was first to settle a
// message), the bucket WORK-agents (what each agent says of itself), the stream WORK-dead
// (dead letters) and the object store WORK-replies (replies too long for a message).
//
// What roles may do is told apart by subjects, so the layout of keys is also the layout of
// permissions: a decision ([Key]) has no text and may be read by every agent, an answer
// ([Answer]) has the text and is written under its agent's own token.
package names
