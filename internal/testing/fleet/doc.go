// Package fleet is the rig of tests with a NATS server: a server in this process that can
// be restarted on its port and its files, and a proxy on loopback that cuts, delays and
// half-opens connections.
package fleet
