// Package action runs composite actions as a runner of GitHub does, as far as the action of
// this repository needs that: steps with their environment, files for outputs and the PATH,
// conditions, commands in the log, and the cache.
package action
