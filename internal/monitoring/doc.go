// Package monitoring tests what packaging/ gives to those who watch agents: each query of the dashboard and of the
// alerts returns data from a real Prometheus that scrapes a real agent, and promtool finds no fault. It needs Debian's
// package prometheus, and says so where it does not run. It has no code of its own.
package monitoring
