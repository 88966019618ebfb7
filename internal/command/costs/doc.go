// Package costs adds up what was spent, by day, entry, session or metadata, and
// spells prices for people and for programs.
package costs
