// Package settle tells a stream what became of an entry: that it was answered, that it
// became a dead letter, or that it was given back.
//
// JetStream's acknowledgement is no fence: one of a stale copy is taken, too. Who was first
// is therefore decided before it, by creating one key in the bucket of results.
//
//	answered     text of the answer -> decision (Create) -> reply -> reply_state -> ack
//	dead letter  decision (Create) -> dead letter -> letter_state -> term
//	superseded   somebody else was first: kept under a key of its own -> ack, never a reply
//	given back   count -> nak
//
// Each step can be the last before a kill. The same call in the next life of the agent, with
// the [Claim] that its ledger kept, goes on where the last one ended: there is one decision,
// at most one reply, and one dead letter. An error means that the step was not confirmed;
// the claim is to be kept and the call made again.
package settle
