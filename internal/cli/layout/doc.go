// Package layout fits what the verbs print to the terminal: aligned columns with
// headers, and texts wrapped at words. Widths are counted in the terminal's
// columns, not in bytes. Into a pipe or a file nothing is wrapped or cut, and lists
// are lines of cells between tabs.
package layout
