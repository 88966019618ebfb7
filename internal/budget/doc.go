// Package budget says what an entry, a session or a day may cost, and whether what
// was spent is over that.
package budget
