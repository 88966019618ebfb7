// Package priced shows results and dead letters with what they cost as it is known
// now: their lines were written before the last request had its price.
package priced
