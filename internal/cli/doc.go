// Package cli is how the commands of heartbeat speak to people: flags, help,
// manual pages, and the line of --version.
package cli
