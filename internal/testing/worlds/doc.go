// Package worlds checks the inbox against a model of it, in worlds of random steps.
// It has only tests.
package worlds
