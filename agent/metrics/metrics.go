// Package metrics exports the agent's figures to Prometheus: one gauge or counter for each, in base units (bytes,
// seconds), read at each scrape.
//
// Labels are bounded: a recording is labelled by name and id until the agent forgets its session; reasons are closed
// sets. Names begin with heapcam_. It serves /metrics, and /healthz, which is 200 while the agent answers and 503 when
// it does not.
//
// What it does not do: keep history, or listen on an address that was not configured.
package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
)

// Source is what the metrics report. All functions must be safe to call at any time.
type Source struct {
	Status func() []session.Status
	// AttachFailures counts by reason, of a closed set; may be nil.
	AttachFailures func() map[string]uint64
	Others         func() []api.Other
	// Self is what the agent itself uses; nil: not exported.
	Self func() quota.Self
	// Incidents returns the number of incidents and what they occupy, bytes; nil: not exported.
	Incidents func() (n int, bytes int64)
	// Spool returns the state of the spool folder; nil, or a nil answer: there is none.
	Spool   func() *spool.Status
	Version string
}

// field is a metric of a recording.
type field struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*session.Status) float64
}

var jvmLabels = []string{"recording", "jvm"}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("heapcam_"+name, help, labels, nil)
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var fields = func() (fs []field) {
	add := func(kind prometheus.ValueType, name, help string, value func(*session.Status) float64) {
		fs = append(fs, field{desc(name, help, jvmLabels...), kind, value})
	}
	const c, g = prometheus.CounterValue, prometheus.GaugeValue
	add(g, "recording_up", "1 while the JVM is being recorded, 0 when the recording is over.",
		func(s *session.Status) float64 { return truth(!s.Phase.Over()) })
	add(g, "ring_bytes", "What the recording occupies on disk.",
		func(s *session.Status) float64 { return float64(s.TraceBytes) })
	add(c, "written_bytes_total", "What was written into the recording by this agent.",
		func(s *session.Status) float64 { return float64(s.WrittenBytes) })
	add(g, "ring_limit_bytes", "What it may occupy: max_trace_size and its deviation, or what the disk leaves.",
		func(s *session.Status) float64 { return float64(s.TraceLimit) })
	add(g, "ring_files", "Files of the recording.",
		func(s *session.Status) float64 { return float64(s.Files) })
	add(g, "ring_held_bytes", "What a pull holds of files that the ring has given up.",
		func(s *session.Status) float64 { return float64(s.HeldBytes) })
	add(c, "rotations_total", "Files begun.",
		func(s *session.Status) float64 { return float64(s.Rotations) })
	add(c, "files_evicted_total", "Files given up for newer ones.",
		func(s *session.Status) float64 { return float64(s.FilesEvicted) })
	add(c, "collections_total", "Collections recorded.",
		func(s *session.Status) float64 { return float64(s.Collections) })
	add(c, "missed_collections_total",
		"Full collections that the JVM posted no events of, so that their pauses are unknown.",
		func(s *session.Status) float64 { return float64(s.Missed) })
	add(g, "sync_pause_seconds", "What the newest sync point added to its pause.",
		func(s *session.Status) float64 { return seconds(s.LastSyncNS) })
	add(g, "sync_pause_longest_seconds", "What the longest sync point added to its pause.",
		func(s *session.Status) float64 { return seconds(s.LongestSyncNS) })
	add(g, "sync_pause_predicted_seconds",
		"What a sync point would add to a pause now; above max_sync_pause the depth is samples.",
		func(s *session.Status) float64 { return seconds(s.PredictedSyncNS) })
	add(c, "emergencies_total", "Sync points that did not wait for a natural collection.",
		func(s *session.Status) float64 { return float64(s.Emergencies) })
	add(c, "emergencies_unanswered_total", "Emergencies that the JVM did not answer in time.",
		func(s *session.Status) float64 { return float64(s.EmergenciesUnanswered) })
	add(c, "samples_total", "Sampled allocations recorded.",
		func(s *session.Status) float64 { return float64(s.Samples) })
	add(c, "sites_cut_total", "Samples told by the callers that were known, the table of frames being full.",
		func(s *session.Status) float64 { return float64(s.SitesCut) })
	add(c, "sites_folded_total", "Least used frames that left the full table of frames.",
		func(s *session.Status) float64 { return float64(s.SitesFolded) })
	add(g, "live_bytes", "Bytes that the heap's spaces held after the last collection.",
		func(s *session.Status) float64 { return float64(s.LiveBytes) })
	add(g, "shared_ring_bytes", "Memory taken from the application's host by the shared ring.",
		func(s *session.Status) float64 { return float64(s.RingBytes) })
	add(g, "shared_ring_backlog_bytes", "What the agent has not read yet.",
		func(s *session.Status) float64 { return float64(s.Backlog) })
	add(c, "probe_pause_seconds_total", "What heapcam added to pauses, by the probe's clock.",
		func(s *session.Status) float64 { return seconds(s.ProbeNS) })
	add(c, "pause_seconds_total", "Pauses of the JVM, heapcam's part included.",
		func(s *session.Status) float64 { return seconds(s.PauseNS) })
	add(c, "probe_sampling_seconds_total", "What sampling took of the application's threads, CPU time.",
		func(s *session.Status) float64 { return seconds(s.SampleNS) })
	add(c, "up_seconds_total", "How long the probe has recorded: the denominator of shares.",
		func(s *session.Status) float64 { return seconds(s.UpNS) })
	add(c, "switches_total", "Changes of depth or sampling interval that kept the budget.",
		func(s *session.Status) float64 { return float64(s.Switches) })
	add(c, "agent_cpu_seconds_total", "CPU time of this agent for the recording.",
		func(s *session.Status) float64 { return seconds(s.AgentCPUNS) })
	add(g, "disk_full", "1 while the ring cannot grow: the disk is full, or keep_free is reached.",
		func(s *session.Status) float64 { return truth(s.DiskFull) })
	add(g, "guarantee_met", "0 while the ring cannot keep max_trace_size less its deviation of complete trace.",
		func(s *session.Status) float64 { return truth(s.GuaranteeMet) })
	add(c, "incidents_total", "Windows that were frozen by themselves.",
		func(s *session.Status) float64 { return float64(s.Incidents) })
	add(c, "incidents_failed_total", "Windows that should have been frozen and could not be.",
		func(s *session.Status) float64 { return float64(s.IncidentsFailed) })
	add(c, "store_faults_total", "Refusals of the disk.",
		func(s *session.Status) float64 { return float64(s.StoreFaults) })
	return fs
}()

var (
	lostEpochs = desc("lost_epochs_total",
		"Collections whose fates were lost, by reason.", append(jvmLabels, "reason")...)
	lostOther = desc("lost_total", "Samples, definitions and blocks lost.", append(jvmLabels, "what")...)
	quality   = desc("site_coverage_ratio",
		"Share of the live bytes whose allocation site is exact, inferred, before the tape, or unknown.",
		append(jvmLabels, "site")...)
	syncPoints = desc("sync_points_total",
		"Listings recorded: natural ones, forced by a full collection or a loss, emergencies.",
		append(jvmLabels, "kind")...)
	attachBad  = desc("attach_failures_total", "Attempts of discovery to attach that failed, by reason.", "reason")
	depth      = desc("depth_info", "1 for the depth that is recorded at.", append(jvmLabels, "depth")...)
	recordings = desc("recordings", "Recordings of this agent, by phase.", "phase")
	notRec     = desc("jvms_not_recorded",
		"JVMs that were found and are not recorded: ignored by a rule, failed, or what doctor calls the problem.",
		"why")
	frozen     = desc("incidents", "Frozen windows that are kept, whoever made them.")
	frozenSize = desc("incidents_bytes", "What they occupy on disk, files that a ring has too included.")
	spoolLeft  = desc("spool_left", "What lies in the spool folder and is not taken: status says why.")
	spoolTaken = desc("spool_taken_total", "Recordings that were put into the spool folder and taken.")
	maxCPU     = desc("agent_max_cpu_ratio", "What the agent itself may take of one core (agent_max_cpu); 0: any.")
	maxMemory  = desc("agent_max_memory_bytes", "Memory that the agent itself may hold (agent_max_memory); 0: any.")
	heldMemory = desc("agent_memory_bytes", "Memory that the agent itself holds, shared rings apart.")
	build      = desc("build_info", "1, with the version.", "version")
)

var phases = []session.Phase{session.Recording, session.Paused, session.Silent, session.Refused, session.EndedPhase,
	session.KilledPhase, session.ProbeStopped, session.Quarantined, session.Stopped}

type collector struct{ src Source }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range fields {
		ch <- f.desc
	}
	for _, d := range []*prometheus.Desc{lostEpochs, lostOther, quality, syncPoints, attachBad, depth, recordings,
		notRec, frozen, frozenSize, spoolLeft, spoolTaken, maxCPU, maxMemory, heldMemory, build} {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	byPhase := map[session.Phase]int{}
	for _, s := range c.src.Status() {
		byPhase[s.Phase]++
		for _, f := range fields {
			put(f.desc, f.kind, f.value(&s), s.ID, s.Name)
		}
		for reason, n := range map[string]uint64{
			"shared ring": s.Dropped.RingEpochs, "store": s.Dropped.StoreEpochs, "check": s.Dropped.FailedEpochs} {
			put(lostEpochs, prometheus.CounterValue, float64(n), s.ID, s.Name, reason)
		}
		for what, n := range map[string]uint64{
			"samples": s.Dropped.Samples, "definitions": s.Dropped.Definitions, "blocks": s.Dropped.Corrupt} {
			put(lostOther, prometheus.CounterValue, float64(n), s.ID, s.Name, what)
		}
		for kind, n := range map[string]uint64{
			"natural": s.SyncPoints - min(s.SyncPoints, s.SyncPointsForced+s.SyncPointsEmergency),
			"forced":  s.SyncPointsForced, "emergency": s.SyncPointsEmergency,
		} {
			put(syncPoints, prometheus.CounterValue, float64(n), s.ID, s.Name, kind)
		}
		if s.Depth != "" {
			put(depth, prometheus.GaugeValue, 1, s.ID, s.Name, s.Depth)
		}
		if q := s.Quality; q != nil && q.Bytes > 0 {
			for site, n := range map[string]uint64{
				"exact": q.Exact, "inferred": q.Inferred, "before tape": q.BeforeTape, "unknown": q.Unknown} {
				put(quality, prometheus.GaugeValue, float64(n)/float64(q.Bytes), s.ID, s.Name, site)
			}
		}
	}
	for _, p := range phases {
		put(recordings, prometheus.GaugeValue, float64(byPhase[p]), string(p))
	}
	why := map[string]int{"ignored": 0, "failed": 0}
	for _, o := range c.src.Others() {
		switch {
		case o.Ignored:
			why["ignored"]++
		case o.Why == "":
			why["failed"]++
		default:
			why[o.Why]++
		}
	}
	for w, n := range why {
		put(notRec, prometheus.GaugeValue, float64(n), w)
	}
	if c.src.AttachFailures != nil {
		for reason, n := range c.src.AttachFailures() {
			put(attachBad, prometheus.CounterValue, float64(n), reason)
		}
	}
	if c.src.Incidents != nil {
		n, bytes := c.src.Incidents()
		put(frozen, prometheus.GaugeValue, float64(n))
		put(frozenSize, prometheus.GaugeValue, float64(bytes))
	}
	if c.src.Spool != nil {
		if s := c.src.Spool(); s != nil {
			put(spoolLeft, prometheus.GaugeValue, float64(len(s.Left)))
			put(spoolTaken, prometheus.CounterValue, float64(s.Taken))
		}
	}
	if c.src.Self != nil {
		s := c.src.Self()
		put(maxCPU, prometheus.GaugeValue, s.MaxCPU)
		put(maxMemory, prometheus.GaugeValue, float64(s.MaxMemory))
		put(heldMemory, prometheus.GaugeValue, float64(s.Memory))
	}
	put(build, prometheus.GaugeValue, 1, c.src.Version)
}

const timeout = 10 * time.Second

// Handler serves /metrics and /healthz. alive says whether the agent answers; it may take a while.
func Handler(src Source, alive func(context.Context) error) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{src}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: timeout}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), timeout)
		defer stop()
		if err := alive(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("ok\n"))
	})
	return mux
}

// Serve serves h on l until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
