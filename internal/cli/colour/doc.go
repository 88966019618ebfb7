// Package colour paints words on terminals that take colour.
package colour
