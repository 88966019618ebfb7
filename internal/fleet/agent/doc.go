// Package agent is one agent of a fleet: it pulls messages from a stream while its inbox
// has room, puts each into the inbox, has a launcher run sessions, and tells the stream
// what became of the entries.
//
// Nothing is remembered but in the ledger (package claims), the inbox and the stream:
//
//	pulled -> claim in the ledger, synced -> entry in the inbox, synced -> … outcome in the
//	inbox -> decision, reply and acknowledgement (package settle) -> claim dropped
//
// So an agent that is killed anywhere goes on from what it finds. One loop owns all state
// but for what keeps messages from being given elsewhere, which may not wait for it.
package agent
