// Package verbs declares the verbs of heartbeat-host: their flags and their texts. What
// they do is in package hosting, which links a database and more. heartbeat, which
// documents and completes all commands, links this package alone.
package verbs
