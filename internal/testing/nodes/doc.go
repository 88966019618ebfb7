// Package nodes has tests of a fleet whose servers are processes of their own: three nodes of a
// cluster, which are killed and restarted under agents that are killed and cut off.
package nodes
