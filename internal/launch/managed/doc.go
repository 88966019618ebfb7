// Package managed works through an inbox with sessions of Claude Code that run one
// after the other in terminals of their own: it does, in the right order, what
// every launcher must.
package managed
