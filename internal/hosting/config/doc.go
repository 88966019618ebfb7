// Package config reads the configuration of a hosted session, one JSON object that
// a guild writes to the host's stdin, and says exactly what is wrong with one.
package config
