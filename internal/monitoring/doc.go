// Package monitoring tests the dashboard and the alerts of packaging/: each query of the dashboard and of the
// alerts returns data from a real Prometheus that scrapes a real agent, and promtool finds no fault. It needs Debian's
// package prometheus, and is skipped without. It has no code of its own.
package monitoring
