package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// recordOptions are the flags that run, record, attach and agent share.
type recordOptions struct {
	out           string
	maxTrace      ui.Size
	deviation     float64
	depth         string
	sampling      ui.Size
	samplingMax   budget
	samplingLive  uint64
	overhead      budget
	compression   string
	threshold     float64
	keepFree      ui.Size
	maxIncidents  ui.Size
	maxTotal      ui.Size
	maxWriteRate  ui.Size
	totalRate     ui.Size
	retainEnded   time.Duration
	fsyncInterval time.Duration
	emergency     string
	shmSize       ui.Size
	names         string
	untested      bool
	proven        bool
	sites         string
	drag          string // run --drag, for the probe
	maxSync       time.Duration
	maxReference  time.Duration
	references    time.Duration
	verbose       bool
	stack         int
}

func (o *recordOptions) add(c *cobra.Command) {
	o.addProbe(c)
	f := c.Flags()
	bind(f, "out", &o.out)
	bind(f, "max_trace_size", &o.maxTrace)
	bind(f, "max_trace_size_deviation", &o.deviation)
	bind(f, "compression", &o.compression)
	bind(f, "compression_threshold", &o.threshold)
	bind(f, "keep_free", &o.keepFree)
	bind(f, "max_total_size", &o.maxTotal)
	bind(f, "max_write_rate", &o.maxWriteRate)
	bind(f, "max_total_write_rate", &o.totalRate)
	bind(f, "retain_ended", &o.retainEnded)
	bind(f, "sampling_max_overhead", &o.samplingMax)
	bind(f, "sampling_target_live_samples", &o.samplingLive)
	bind(f, "overhead_cpu", &o.overhead)
	bind(f, "max_incidents_size", &o.maxIncidents)
	bind(f, "fsync_interval", &o.fsyncInterval)
	bind(f, "max_reference_pause", &o.maxReference)
	bind(f, "references_interval", &o.references)
	bind(f, "emergency", &o.emergency)
	bind(f, "verbose", &o.verbose)
	inSection(f, ownFlags, "out", "verbose")
}

// addProbe adds the flags that are options of the probe. They may differ between the JVMs of one agent.
func (o *recordOptions) addProbe(c *cobra.Command) {
	f := c.Flags()
	bind(f, "depth", &o.depth)
	bind(f, "sampling", &o.sampling)
	bind(f, "stack_depth", &o.stack)
	bind(f, "shm_size", &o.shmSize)
	bind(f, "max_sync_pause", &o.maxSync)
	bind(f, "thread_names", &o.names)
	bind(f, "allow_untested_jdk", &o.untested)
	bind(f, "proven_sites", &o.proven)
	bind(f, "sites", &o.sites)
}

// exact says whether bytecode is changed to know all sites.
func (o *recordOptions) exact() bool { return o.sites == "exact" || o.sites == "hash" }

// exactOption is what says so to the probe.
func (o *recordOptions) exactOption() string {
	if o.sites == "hash" {
		return "exact=2"
	}
	return "exact=1"
}

// confirmed says whether a JVM that runs already may be changed. It warns if it may not yet.
func (o *recordOptions) confirmed(yes bool) error {
	if !o.exact() || yes {
		return nil
	}
	return usage("--sites %s changes the bytecode of all classes of a JVM that runs. The JVM stops some times for it, "+
		"compiles its code anew, and is slower until it has. It keeps about 10 MiB of native memory for each 1,000 "+
		"loaded classes, and up to 3 MiB more in each further recording. If that may be, add --yes", o.sites)
}

// check finds wrong settings before recording starts.
func (o *recordOptions) check() error {
	if _, ok := session.DepthNames[o.depth]; !ok {
		return usage("--depth %s: it must be samples, survivors or full", o.depth)
	}
	if !slices.Contains([]string{"off", "folded", "full"}, o.names) {
		return usage("--thread-names %s: it must be off, folded or full", o.names)
	}
	if o.sites != "sampled" && !o.exact() {
		return usage("--sites %s: it must be sampled, exact or hash", o.sites)
	}
	if o.stack < 1 || o.stack > 512 {
		return usage("--stack-depth %d: it must be from 1 to 512", o.stack)
	}
	if o.deviation <= 0 || o.deviation > 0.5 {
		return usage("--max-trace-size-deviation %v: it must be above 0 and at most 0.5", o.deviation)
	}
	if !slices.Contains([]string{"none", "partial", "full", "adaptive"}, o.compression) {
		return usage("--compression %s: it must be none, partial, full or adaptive", o.compression)
	}
	if o.threshold <= 0 || o.threshold > 1 {
		return usage("--compression-threshold %v: it must be above 0 and at most 1", o.threshold)
	}
	if o.fsyncInterval <= 0 {
		return usage("--fsync-interval %v: it must be above 0", o.fsyncInterval)
	}
	if o.maxSync != 0 && (o.maxSync < time.Millisecond || o.maxSync > time.Minute) {
		return usage("--max-sync-pause %v: it must be from 1ms to 1m, or 0 (unlimited)", o.maxSync)
	}
	if o.maxReference < 0 || o.maxReference > time.Minute {
		return usage("--max-reference-pause %v: it must be at most 1m, or 0 (none is taken)", o.maxReference)
	}
	if o.references != 0 && o.references < time.Minute {
		return usage("--references-interval %v: it must be at least 1m, or 0 (none by time)", o.references)
	}
	if o.emergency != "walk" && o.emergency != "gc" && o.emergency != "off" {
		return usage("--emergency %s: it must be walk, gc or off", o.emergency)
	}
	if o.sampling > 1<<30 {
		return usage("--sampling %s: it must be at most 1 GiB", &o.sampling)
	}
	if o.maxTrace < 1<<20 {
		return usage("--max-trace-size %s: it must be at least 1 MiB", &o.maxTrace)
	}
	if dir := o.outDir(); isRecording(dir) { // the ring folder of another JVM, most likely
		return usage("--out %s: %s is a recording; name the folder that contains recordings", dir, dir)
	}
	if why := badLink(o.outDir()); why != "" {
		return usage("--out %s: %s; name another folder, or remove the link", o.outDir(), why)
	}
	if o.retainEnded < 0 {
		return usage("--retain-ended %v: it must not be negative", o.retainEnded)
	}
	if o.shmSize != 0 && (o.shmSize < 1<<20 || o.shmSize > 1<<30 || o.shmSize&(o.shmSize-1) != 0) {
		return usage("--shm-size %s: it must be a power of two from 1 MiB to 1 GiB", &o.shmSize)
	}
	return nil
}

func (o *recordOptions) config(stderr io.Writer) agent.Config {
	level := zerolog.WarnLevel
	if o.verbose {
		level = zerolog.DebugLevel
	}
	incidents := int64(o.maxIncidents)
	if incidents == 0 {
		incidents = -1
	}
	pause := o.maxReference
	if pause == 0 {
		pause = -1
	}
	return agent.Config{
		MaxReferencePause: pause, ReferencesInterval: o.references,
		SamplingShare: o.samplingMax.share(), BudgetCPU: o.overhead.share(), LiveSamples: o.samplingLive,
		MaxIncidents: incidents, MaxTotal: int64(o.maxTotal), RetainEnded: o.retainEnded,
		MaxWriteRate: int64(o.maxWriteRate), MaxTotalWriteRate: int64(o.totalRate),
		Out: o.outDir(), PullOut: o.out, MaxTraceSize: int64(o.maxTrace), Deviation: o.deviation,
		Compression: o.compression, Threshold: o.threshold,
		KeepFree: int64(o.keepFree), SyncInterval: o.fsyncInterval, Emergency: o.emergency,
		MaxRing: max(256<<20, uint64(o.shmSize)), Log: newLog(stderr, level),
	}
}

func newLog(w io.Writer, level zerolog.Level) zerolog.Logger {
	// the console writer quotes the values of fields itself
	console := zerolog.ConsoleWriter{Out: ui.NewGuard(w), NoColor: true, TimeFormat: time.TimeOnly}
	for _, k := range logs.Keys() {
		console.FieldsOrder = append(console.FieldsOrder, k.Name)
	}
	console.FormatMessage = func(m any) string {
		if m == nil {
			return ""
		}
		return string(ui.Prose(fmt.Sprint(m)))
	}
	return zerolog.New(console).Level(level).With().Timestamp().Logger()
}

// probeOptions are what follows the library's path in -agentpath.
func (o *recordOptions) probeOptions(ringDir string) string {
	depth := o.depth
	if o.exact() {
		depth = "full"
	}
	s := fmt.Sprintf("dir=%s,depth=%s,interval=%d", ringDir, depth, int64(o.sampling))
	if o.shmSize != 0 {
		s += fmt.Sprintf(",ring=%d", int64(o.shmSize))
	}
	s += fmt.Sprintf(",max_sync=%d", o.maxSync.Milliseconds())
	if o.stack != 64 {
		s += fmt.Sprintf(",stack=%d", o.stack)
	}
	if o.names != "folded" {
		s += ",names=" + o.names
	}
	if o.untested {
		s += ",allow_untested=1"
	}
	if o.proven {
		s += ",newsites=1"
	}
	if o.exact() {
		s += "," + o.exactOption()
	}
	if o.drag != "" {
		s += ",drag=" + o.drag
	}
	if share := o.overhead.share(); share < 0 {
		s += ",storm=0"
	} else if share > stormShare {
		s += fmt.Sprintf(",storm=%d", int(1000*share))
	}
	if x := os.Getenv("HEAPCAM_PROBE_OPTIONS"); x != "" { // for tests of the probe's own hooks
		s += "," + x
	}
	return s
}

// stormShare is what recording may take of any ten seconds in a storm of full collections, by default.
const stormShare = 0.05

// attachOptions are probeOptions without the folder, which attaching adds.
func (o *recordOptions) attachOptions() string {
	return strings.TrimPrefix(o.probeOptions("-"), "dir=-,")
}

func (o *recordOptions) outDir() string {
	if o.out != "" {
		return o.out
	}
	return defaultOut()
}

func defaultOut() string {
	if d := os.Getenv("HEAPCAM_OUT"); d != "" {
		return d
	}
	return "heapcam-recordings"
}

// isRecording says that dir is a ring folder.
func isRecording(dir string) bool {
	_, ok := onDisk(dir)
	return ok
}

const outUsage = "Folder for recordings. Default $HEAPCAM_OUT (else ./heapcam-recordings) and /var/lib/heapcam."

// addOut adds the flag of verbs that look for recordings.
func addOut(c *cobra.Command, p *string) { c.Flags().StringVar(p, "out", "", outUsage) }

// outDirs are the folders in which verbs look for recordings.
func outDirs(flag string) []string {
	if flag != "" {
		return []string{flag}
	}
	return []string{defaultOut(), systemOut}
}

// summary is the line on one recorded JVM.
func summary(s session.Status) ui.Text {
	line := ui.Sprintf("%s (pid %d):", s.Name, s.PID)
	switch {
	case s.Phase == session.Refused:
		return line + ui.Sprintf(" not recorded: %s", ui.Prose(s.Reason))
	case s.Phase == session.Quarantined, s.Phase == session.ProbeStopped, s.Phase == session.Stopped && s.Reason != "":
		line += ui.Sprintf(" %s: %s;", s.Phase, ui.Prose(s.Reason))
	case s.Phase == session.KilledPhase && s.Reason != "":
		line += ui.Sprintf(" no end marker; %s;", ui.Prose(s.Reason))
	case s.Phase == session.KilledPhase:
		line += " no end marker (killed or crashed);"
	}
	if s.Files == 0 && s.Collections > 0 && s.Phase.Over() && s.Dir != "" {
		return line + ui.Sprintf(" %s, but none is on the disk: %s has no ring files. Somebody removed or moved it",
			ui.Plural(s.Collections, "collection"), ui.Path(s.Dir))
	}
	line += ui.Sprintf(" %s, %s in %s: %s", ui.Plural(s.Collections, "collection"), ui.Bytes(s.TraceBytes),
		ui.Plural(uint64(s.Files), "file"), ui.Path(s.Dir))
	if n := s.Dropped.RingEpochs + s.Dropped.StoreEpochs; n > 0 {
		line += ui.Sprintf(" (%s lost)", ui.Plural(n, "collection"))
	}
	return line
}
