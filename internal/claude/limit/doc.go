// Package limit finds out from an error message when a usage limit ends. It uses
// no regular expressions: the hook starts once per turn, and compiling them would
// slow every start down.
package limit
