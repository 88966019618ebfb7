// Package metrics shows an inbox in figures, in the text format that Prometheus
// reads.
package metrics
