// Package cli is what heartbeat's commands share: verbs, flags, help, manual pages and
// the line of --version.
package cli
