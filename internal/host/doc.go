// Package host tells what heartbeat must know of the machine it runs on: which
// boot this is, a clock that only goes forward, and whether a process lives.
package host
