// Package notify has commands for --notify that are ready to use, and tries each.
package notify
