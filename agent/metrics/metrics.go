// Package metrics exports the agent's figures to Prometheus: one gauge or counter for each, in base units (bytes,
// seconds), read at each scrape.
//
// Labels are bounded: a recording is labelled by name and id until the agent forgets its session; reasons are closed
// sets. Names begin with heapcam_. It serves /metrics, and /healthz, which is 200 while the agent answers and 503 when
// it does not.
//
// What it does not do: keep history, or listen on an address that was not configured.
package metrics

//go:generate go test . -run TestReference -update

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/agent/tables"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Source is where the figures come from. Its functions must be safe to call at any time.
type Source struct {
	Status func() []session.Status
	// AttachFailures counts by reason, of a closed set; may be nil.
	AttachFailures func() map[string]uint64
	Others         func() []api.Other
	// Self is what the agent itself uses; nil: not exported.
	Self func() quota.Self
	// Incidents gives the number of incidents and their size in bytes; nil: not exported.
	Incidents func() (n int, bytes int64)
	// Spool describes the spool folder; nil, or a nil answer: there is none.
	Spool func() *spool.Status
	// Upload says how far uploads are; nil, or a nil answer: nothing is uploaded.
	Upload func() *upload.Status
	// Tables says how far tables are; nil, or it gives nil: none are written.
	Tables func() *tables.Status
	// Profiles takes profiles of the heap; nil: none are taken.
	Profiles *profiles.Hub
	Version  string
}

// metric is the definition of a metric. docs/reference/metrics.md is generated from all of them.
type metric struct {
	desc       *prometheus.Desc
	kind       prometheus.ValueType
	name, help string
	more       string // what only the reference says: values of labels, what to do
	labels     []string
}

// field is a metric of a recording.
type field struct {
	metric
	value func(*session.Status) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var jvmLabels = []string{"recording", "jvm"}

func define(kind prometheus.ValueType, name, help, more string, labels ...string) metric {
	name = "heapcam_" + name
	return metric{prometheus.NewDesc(name, help, labels, nil), kind, name, help, more, labels}
}

func ofJVM(labels ...string) []string { return append(jvmLabels[:2:2], labels...) }

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// fields are the metrics of a recording that have no labels but jvmLabels.
var fields = slices.Concat(diskFields(), pauseFields(), ringFields())

func diskFields() (fs []field) {
	add := func(kind prometheus.ValueType, name, help, more string, value func(*session.Status) float64) {
		fs = append(fs, field{define(kind, name, help, more, jvmLabels...), value})
	}
	add(gauge, "recording_up", "1 while the agent records the JVM, 0 when the recording has ended.", "",
		func(s *session.Status) float64 { return truth(!s.Phase.Over()) })
	add(gauge, "ring_bytes", "Size of the recording on disk.", "",
		func(s *session.Status) float64 { return float64(s.TraceBytes) })
	add(gauge, "ring_limit_bytes",
		"Largest size of the recording: max_trace_size and its deviation, or less if the disk has less room.", "",
		func(s *session.Status) float64 { return float64(s.TraceLimit) })
	add(gauge, "ring_files", "Number of files of the recording.", "",
		func(s *session.Status) float64 { return float64(s.Files) })
	add(gauge, "ring_held_bytes", "Size of files that the ring has removed and a pull still reads.", "",
		func(s *session.Status) float64 { return float64(s.HeldBytes) })
	add(counter, "written_bytes_total", "Bytes that this agent has written to the recording.",
		"`max_write_rate` and `max_total_write_rate` limit its rate.",
		func(s *session.Status) float64 { return float64(s.WrittenBytes) })
	add(counter, "rotations_total", "Ring files started.", "",
		func(s *session.Status) float64 { return float64(s.Rotations) })
	add(counter, "files_evicted_total", "Ring files deleted to make room for newer ones.", "",
		func(s *session.Status) float64 { return float64(s.FilesEvicted) })
	add(gauge, "disk_full", "1 while the recording cannot grow: the disk is full, or keep_free is reached.",
		"The recording continues inside its present size.",
		func(s *session.Status) float64 { return truth(s.DiskFull) })
	add(counter, "store_faults_total", "Writes that the disk refused.",
		"What is on disk stays. Recording resumes by itself.",
		func(s *session.Status) float64 { return float64(s.StoreFaults) })
	add(gauge, "guarantee_met",
		"1 while the recording is large enough for its limits, else 0.",
		"1: the part that can be read without gaps has at least `max_trace_size` * (1 - `max_trace_size_deviation`) "+
			"bytes. 0: the sync points of this heap take too much of the ring. `heapcam status` names a size that is "+
			"large enough.",
		func(s *session.Status) float64 { return truth(s.GuaranteeMet) })
	add(counter, "incidents_total", "Incidents that the agent created automatically.",
		"The JVM was killed or crashed, its heap was exhausted, or full collections took more than half of a minute.",
		func(s *session.Status) float64 { return float64(s.Incidents) })
	add(counter, "incidents_failed_total", "Automatic incidents that the agent could not create.",
		"The disk is full, or `max_incidents_size` is reached.",
		func(s *session.Status) float64 { return float64(s.IncidentsFailed) })
	return fs
}

func pauseFields() (fs []field) {
	add := func(kind prometheus.ValueType, name, help, more string, value func(*session.Status) float64) {
		fs = append(fs, field{define(kind, name, help, more, jvmLabels...), value})
	}
	add(counter, "up_seconds_total", "Time for which the probe has recorded.", "",
		func(s *session.Status) float64 { return seconds(s.UpNS) })
	add(counter, "pause_seconds_total", "Pauses of the JVM, heapcam's part included.", "",
		func(s *session.Status) float64 { return seconds(s.PauseNS) })
	add(counter, "probe_pause_seconds_total", "Time for which heapcam stopped the JVM, by the probe's clock.",
		"What it added to pauses, and its own stops for reference listings. Divide by `heapcam_up_seconds_total` for "+
			"the share of wall time. If it is too high, set `overhead_cpu`.",
		func(s *session.Status) float64 { return seconds(s.ProbeNS + s.ReferencesNS) })
	add(counter, "reference_pause_seconds_total", "Time for which reference listings stopped the JVM.",
		"`heapcam_probe_pause_seconds_total` includes it. `max_reference_pause` limits each stop.",
		func(s *session.Status) float64 { return seconds(s.ReferencesNS) })
	add(counter, "probe_sampling_seconds_total", "CPU time that sampling took on the application's threads.",
		"If it is too high, set a larger `sampling`.",
		func(s *session.Status) float64 { return seconds(s.SampleNS) })
	add(counter, "probe_helpers_seconds_total", "CPU time of the probe's threads that help in pauses.",
		"They use CPUs that the application leaves idle while it stands still.",
		func(s *session.Status) float64 { return seconds(s.HelpersNS) })
	add(gauge, "sync_pause_seconds", "Time that the newest sync point added to its pause.", "",
		func(s *session.Status) float64 { return seconds(s.LastSyncNS) })
	add(gauge, "sync_pause_longest_seconds", "Longest time that a sync point added to its pause.", "",
		func(s *session.Status) float64 { return seconds(s.LongestSyncNS) })
	add(gauge, "sync_pause_predicted_seconds", "Time that a sync point would add to a pause now.",
		"A listing that would take longer than `max_sync_pause` is spread over several pauses.",
		func(s *session.Status) float64 { return seconds(s.PredictedSyncNS) })
	add(counter, "switches_total", "Changes of depth, sampling interval, compression or limits.",
		"A limit was reached, there was room again, or the configuration was reloaded.",
		func(s *session.Status) float64 { return float64(s.Switches) })
	add(counter, "emergencies_total", "Sync points that did not wait for a natural collection.",
		"heapcam stopped the JVM, because no collection happened in time.",
		func(s *session.Status) float64 { return float64(s.Emergencies) })
	add(counter, "emergencies_unanswered_total", "Emergencies that the JVM did not answer in time.",
		"The JVM is stopped, or has no CPU time.",
		func(s *session.Status) float64 { return float64(s.EmergenciesUnanswered) })
	add(counter, "agent_cpu_seconds_total", "CPU time of the agent for this recording.", "",
		func(s *session.Status) float64 { return seconds(s.AgentCPUNS) })
	return fs
}

func ringFields() (fs []field) {
	add := func(kind prometheus.ValueType, name, help, more string, value func(*session.Status) float64) {
		fs = append(fs, field{define(kind, name, help, more, jvmLabels...), value})
	}
	add(counter, "collections_total", "Collections recorded.", "",
		func(s *session.Status) float64 { return float64(s.Collections) })
	add(counter, "missed_collections_total", "Full collections for which the JVM posted no events.",
		"Their pauses are unknown. JDK 17 and 21 with Serial and Parallel do this for `jcmd GC.class_histogram` and "+
			"`GC.heap_dump`.",
		func(s *session.Status) float64 { return float64(s.Missed) })
	add(gauge, "live_bytes", "Bytes in use in the heap's spaces after the last collection.",
		"They include garbage in old space that was not collected yet.",
		func(s *session.Status) float64 { return float64(s.LiveBytes) })
	add(counter, "samples_total", "Sampled allocations recorded.", "",
		func(s *session.Status) float64 { return float64(s.Samples) })
	add(counter, "sites_cut_total", "Samples whose stack was cut to the known callers.",
		"The table of frames is full; see `stack_depth`.",
		func(s *session.Status) float64 { return float64(s.SitesCut) })
	add(counter, "sites_folded_total", "Least used stack frames that were evicted from the full table of frames.", "",
		func(s *session.Status) float64 { return float64(s.SitesFolded) })
	add(gauge, "shared_ring_bytes", "Memory of the shared ring, which counts as the JVM's.", "",
		func(s *session.Status) float64 { return float64(s.RingBytes) })
	add(gauge, "shared_ring_backlog_bytes", "Bytes in the shared ring that the agent has not read yet.", "",
		func(s *session.Status) float64 { return float64(s.Backlog) })
	return fs
}

var (
	lostEpochs = define(counter, "lost_epochs_total", "Collections whose moves and deaths were lost, by reason.",
		"`shared ring`: the agent does not keep up; set a larger `shm_size`, or give the agent more CPU. `store`: the "+
			"disk refused them, or a sync point was due and no collection happened. `check`: a self-check of the "+
			"probe "+
			"failed, and only the pause is recorded; report it.", ofJVM("reason")...)
	lostOther = define(counter, "lost_total", "Samples, definitions and blocks that are missing from the recording.",
		"`what` is `samples`, `definitions` (names of classes, methods and threads) or `blocks` (the agent could not "+
			"decode them).", ofJVM("what")...)
	coverage = define(gauge, "site_coverage_ratio", "Share of the live bytes by how their allocation site is known.",
		"`site` is `exact`, `proven`, `inferred`, `candidates` (one of two to four bytecodes), `before recording` "+
			"(possibly older than the recording) or `unknown`.",
		ofJVM("site")...)
	syncPoints = define(counter, "sync_points_total", "Listings of all live objects recorded, by kind.",
		"`natural`; `forced` by a full collection or a loss; `emergency`.", ofJVM("kind")...)
	depth = define(gauge, "depth_info", "1 for the depth at which the agent records.",
		"`depth` is `samples`, `survivors` or `full`.", ofJVM("depth")...)
	info = define(gauge, "recording_info", "1, with attributes of OpenTelemetry that say whose the recording is.",
		"`service` is `service.name`, `namespace` that of the service, else of Kubernetes. `instance` is the instance "+
			"id, else pod, container, unit or user. "+
			"Join it: `heapcam_live_bytes * on(recording) group_left(service, version) heapcam_recording_info`.",
		ofJVM("service", "namespace", "version", "instance", "host")...)
	leaks = define(gauge, "leak_bytes_per_second", "Growth of what leaks or fills the heap, by the newest verdict.",
		"The agent judges incidents, and with `verdict_interval` running recordings. A verdict has a series for a "+
			"day, or until the next one. `kind` is `leak`, "+
			"`fills-heap` or `suspect`, which may be a cache. `site_id` names the allocation site, the same on every "+
			"host. `class` is the class of the largest part. The agent exports the largest verdicts: 5 of a "+
			"recording, 50 in all.",
		ofJVM("service", "version", "kind", "site_id", "class")...)
	leaksLeft = define(gauge, "leaks_left_out", "Verdicts that heapcam_leak_bytes_per_second leaves out.",
		"`heapcam leaks` on the incident, or on the recording, lists them.")
	attachBad = define(counter, "attach_failures_total", "Failed attempts to attach of an agent with discover: "+
		"true, by reason.",
		"`reason` is `denied`, `refused`, `timeout` or `other`.", "reason")
	recordings = define(gauge, "recordings", "Recordings of this agent, by phase.",
		"`phase` is that of [`jvms[].phase`](json.md#heapcamstatus1). `gave up`, `quarantined`: report it.", "phase")
	notRec = define(gauge, "jvms_not_recorded", "JVMs that the agent found and does not record.",
		"`why` is `ignored` (a rule), `detached` (by a user), `switch` (`/etc/heapcam/disabled`), `agent memory`, "+
			"`failed`, "+
			"or the `problem` that `heapcam doctor --json` names. `heapcam status` lists the JVMs.", "why")
	frozen     = define(gauge, "incidents", "Incidents on disk, automatic or not.", "")
	frozenSize = define(gauge, "incidents_bytes", "Size of all incidents on disk.",
		"Includes files that they share with a recording.")
	spoolLeft = define(gauge, "spool_left", "Entries of the spool folder that the agent does not take.",
		"`heapcam status` gives the reasons.")
	spoolTaken    = define(counter, "spool_taken_total", "Recordings taken from the spool folder.", "")
	uploadPending = define(gauge, "upload_pending", "Incidents that the bucket of `upload` does not have yet.", "")
	uploadDone    = define(counter, "uploads_total", "Incidents that were uploaded.",
		"The count outlives the agent, as that of dropped incidents does.")
	uploadBytes  = define(counter, "upload_bytes_total", "Bytes that this agent has uploaded.", "")
	uploadFailed = define(counter, "upload_failures_total", "Uploads that failed and are tried again.",
		"`heapcam status` gives the last error.")
	profilePending = define(gauge, "profiles_pending",
		"Profiles that the server of profiles_url does not have yet.", "")
	profilePushed = define(counter, "profiles_pushed_total", "Profiles that were pushed.",
		"The count outlives the agent, as that of lost profiles does.")
	profileFailed = define(counter, "profile_push_failures_total", "Requests to push profiles that failed.",
		"The log has the error.")
	profileDropped = define(counter, "profiles_dropped_total", "Profiles that were lost.",
		"16 MiB waited, the server refused them, the agent was killed, or it had too little CPU time to make them.")
	uploadDropped = define(counter, "uploads_dropped_total", "Incidents that were deleted before they were uploaded.",
		"They made room for newer ones while the bucket was away, or somebody deleted them.")
	maxCPU = define(gauge, "agent_max_cpu_ratio", "Share of one core that the agent may use (agent_max_cpu).",
		"0 is unlimited. `process_cpu_seconds_total` says what the agent uses.")
	maxMemory = define(gauge, "agent_max_memory_bytes", "Memory that the agent may use (agent_max_memory).",
		"0 is unlimited.")
	heldMemory = define(gauge, "agent_memory_bytes", "Memory that the agent uses, without shared rings.", "")
	build      = define(gauge, "build_info", "1, with the version as a label.", "", "version")
)

// others are the metrics that are not in fields.
var others = []metric{pauses, lostEpochs, lostOther, coverage, syncPoints, depth, info, leaks, oldGarbage, oldObjects,
	oldListed, attachBad, recordings, notRec, frozen, frozenSize, leaksLeft, spoolLeft, spoolTaken, uploadPending,
	uploadDone, uploadBytes, uploadFailed, uploadDropped, profilePending, profilePushed, profileFailed, profileDropped,
	tablePending, tableDone, tableFailed, tableDropped, tableLeftOut,
	maxCPU, maxMemory, heldMemory, build}

var phases = []session.Phase{session.Recording, session.Paused, session.Silent, session.Refused, session.EndedPhase,
	session.KilledPhase, session.ProbeStopped, session.Quarantined, session.Stopped}

type collector struct{ src Source }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range fields {
		ch <- f.desc
	}
	for _, m := range others {
		ch <- m.desc
	}
}

// shown gives label values with control and bidi characters as escapes: programs name themselves, and some show labels
// on a terminal.
func shown(labels []string) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = string(ui.Escape(l))
	}
	return out
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	put := func(m metric, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, shown(labels)...)
	}
	byPhase := map[session.Phase]int{}
	all := c.src.Status()
	putLeaks(put, all)
	putGarbage(put, all)
	for _, s := range all {
		byPhase[s.Phase]++
		for _, f := range fields {
			put(f.metric, f.value(&s), s.ID, s.Name)
		}
		putPauses(ch, &s)
		for reason, n := range map[string]uint64{
			"shared ring": s.Dropped.RingEpochs, "store": s.Dropped.StoreEpochs, "check": s.Dropped.FailedEpochs} {
			put(lostEpochs, float64(n), s.ID, s.Name, reason)
		}
		for what, n := range map[string]uint64{
			"samples": s.Dropped.Samples, "definitions": s.Dropped.Definitions, "blocks": s.Dropped.Corrupt} {
			put(lostOther, float64(n), s.ID, s.Name, what)
		}
		for kind, n := range map[string]uint64{
			"natural": s.SyncPoints - min(s.SyncPoints, s.SyncPointsForced+s.SyncPointsEmergency),
			"forced":  s.SyncPointsForced, "emergency": s.SyncPointsEmergency,
		} {
			put(syncPoints, float64(n), s.ID, s.Name, kind)
		}
		if r := s.Resource; len(r) > 0 {
			put(info, 1, s.ID, s.Name, r[trace.AttrService], r.Namespace(), r[trace.AttrVersion], r.Instance(),
				r[trace.AttrHost])
		}
		if s.Depth != "" {
			put(depth, 1, s.ID, s.Name, s.Depth)
		}
		if q := s.Quality; q != nil && q.Bytes > 0 {
			for site, n := range map[string]uint64{
				"exact": q.Exact, "proven": q.Proven, "inferred": q.Inferred, "candidates": q.Few,
				"before recording": q.BeforeRecording, "unknown": q.Unknown} {
				put(coverage, float64(n)/float64(q.Bytes), s.ID, s.Name, site)
			}
		}
	}
	for _, p := range phases {
		put(recordings, float64(byPhase[p]), string(p))
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
		put(notRec, float64(n), w)
	}
	if c.src.AttachFailures != nil {
		for reason, n := range c.src.AttachFailures() {
			put(attachBad, float64(n), reason)
		}
	}
	c.stored(put)
	c.uploads(put)
	c.profiles(put)
	c.tables(put)
	if c.src.Self != nil {
		s := c.src.Self()
		put(maxCPU, s.MaxCPU)
		put(maxMemory, float64(s.MaxMemory))
		put(heldMemory, float64(s.Memory))
	}
	put(build, 1, c.src.Version)
}

// maxLeaks bounds the series of leaks.
const maxLeaks = 50

// putLeaks gives the largest leaks of all recordings, and how many they are not.
func putLeaks(put func(m metric, v float64, labels ...string), all []session.Status) {
	type leak struct {
		session.Leak
		of *session.Status
	}
	var list []leak
	left := 0
	for i := range all {
		if v := all[i].Verdict; v != nil {
			left += v.LeftOut
			for _, l := range v.Leaks {
				list = append(list, leak{l, &all[i]})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b leak) int { return cmp.Compare(b.BytesPerSecond, a.BytesPerSecond) })
	type key struct{ id, site, kind, class string }
	seen := map[key]bool{}
	for _, l := range list {
		k := key{l.of.ID, l.SiteID, l.Kind, l.Class}
		if len(seen) == maxLeaks || seen[k] {
			left++
			continue
		}
		seen[k] = true
		put(leaks, l.BytesPerSecond, l.of.ID, l.of.Name, l.of.Resource[trace.AttrService],
			l.of.Resource[trace.AttrVersion], l.Kind, l.SiteID, l.Class)
	}
	put(leaksLeft, float64(left))
}

// stored gives the metrics of incidents and of the spool folder.
func (c collector) stored(put func(m metric, v float64, labels ...string)) {
	if c.src.Incidents != nil {
		n, bytes := c.src.Incidents()
		put(frozen, float64(n))
		put(frozenSize, float64(bytes))
	}
	if c.src.Spool != nil {
		if s := c.src.Spool(); s != nil {
			put(spoolLeft, float64(len(s.Left)))
			put(spoolTaken, float64(s.Taken))
		}
	}
}

// uploads gives the metrics of uploads, if there are any.
func (c collector) uploads(put func(m metric, v float64, labels ...string)) {
	if c.src.Upload == nil {
		return
	}
	if s := c.src.Upload(); s != nil {
		put(uploadPending, float64(s.Pending))
		put(uploadDone, float64(s.Uploaded))
		put(uploadBytes, float64(s.Bytes))
		put(uploadFailed, float64(s.Failed))
		put(uploadDropped, float64(s.Dropped))
	}
}

// profiles gives the metrics of profiles, if any are taken.
func (c collector) profiles(put func(m metric, v float64, labels ...string)) {
	if c.src.Profiles != nil {
		s := c.src.Profiles.Status()
		put(profilePending, float64(s.Pending))
		put(profilePushed, float64(s.Pushed))
		put(profileFailed, float64(s.Failed))
		put(profileDropped, float64(s.Dropped))
	}
}

const timeout = 10 * time.Second

// Handler serves /metrics and /healthz. alive says whether the agent answers; it may take a while.
func Handler(src Source, alive func(context.Context) error) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{src}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: timeout}))
	if src.Profiles != nil {
		if h := src.Profiles.Handler(); h != nil {
			mux.Handle("GET /profiles/", h)
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), timeout)
		defer stop()
		if err := alive(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}
