// Package world holds the inbox against a model of it, in worlds of random steps.
// Its tests are all that it has.
package worlds
