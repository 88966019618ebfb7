// Package soak has tests in which a launcher that stays up lives through what passes: an
// update of the client, crashes at its start, full disks, too few descriptors, restarts.
package soak
