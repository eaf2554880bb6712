package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heapcam/heapcam/agent/session"
)

// histogram is the kind of a metric that no ValueType names.
const histogram = prometheus.ValueType(-1)

var pauses = define(histogram, "gc_pause_seconds", "Pauses by their length, since this agent began with the recording.",
	"A native histogram, with buckets of 9 %. In the text format, and for a Prometheus without native histograms, it "+
		"has only sum and count. heapcam's part of pauses is included.", jvmLabels...)

// putPauses gives the pauses of a recording.
func putPauses(ch chan<- prometheus.Metric, s *session.Status) {
	if s.Pauses == nil {
		return
	}
	c := s.Pauses.Counts()
	m, err := prometheus.NewConstNativeHistogram(pauses.desc, c.Count, c.Sum, c.Buckets, nil, c.Zero,
		session.PauseSchema, c.ZeroThreshold, time.Time{}, shown([]string{s.ID, s.Name})...)
	if err == nil {
		ch <- m
	}
}
