// Package verbs is heartbeat-nats, the command that has many agents work through one
// stream: one file a verb. What flags a verb has is in package page.
package verbs
