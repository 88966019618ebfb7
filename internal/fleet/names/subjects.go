package names

import "strings"

// The rules of a server about subjects, without one: a process that links it also runs
// what it does in the background.

// IsSubject reports whether a subject, which may have wildcards, has words between its dots.
func IsSubject(subject string) bool {
	words := strings.Split(subject, ".")
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\f\r") || w == ">" && i < len(words)-1 {
			return false
		}
	}
	return true
}

// Collide reports whether a message could have both subjects.
func Collide(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		switch x, y := as[i], bs[i]; {
		case x == ">" || y == ">":
			return true
		case x != y && x != "*" && y != "*":
			return false
		}
	}
	return len(as) == len(bs)
}

// Covers reports whether a filter takes every message of a subject, which may have
// wildcards itself.
func Covers(filter, subject string) bool {
	want, have := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, w := range want {
		switch {
		case i >= len(have):
			return false
		case w == ">":
			return true
		case have[i] == ">" || w != "*" && w != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
