// Package price says what an entry, a session or a day cost.
//
// Dollars are whole billionths, so that the parts of a sum add up to it exactly.
// They come from the client alone; there is no price table here.
package price
