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
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// recordOptions are the flags that run, record, attach and agent share.
type recordOptions struct {
	out          string
	maxTrace     size
	deviation    float64
	depth        string
	sampling     size
	samplingMax  budget
	samplingLive uint64
	compression  string
	threshold    float64
	keepFree     size
	maxIncidents size
	maxTotal     size
	maxWriteRate size
	totalRate    size
	retainEnded  time.Duration
	syncInterval time.Duration
	emergency    string
	ring         size
	names        string
	untested     bool
	maxSync      time.Duration
	verbose      bool
	stack        int
}

func (o *recordOptions) add(c *cobra.Command) {
	o.maxTrace = agent.DefaultMaxTraceSize
	o.addProbe(c)
	f := c.Flags()
	f.StringVar(&o.out, "out", "", "folder for recordings, one ring folder a JVM (default $HEAPCAM_OUT, else ./heapcam-recordings; the agent as root: /var/lib/heapcam)")
	f.Var(&o.maxTrace, "max-trace-size", "size of the ring on disk, per JVM")
	f.Float64Var(&o.deviation, "max-trace-size-deviation", agent.DefaultDeviation, "how far the ring may be above or below its size, 0 < d <= 0.5")
	f.StringVar(&o.compression, "compression", "adaptive", "none, partial, full or adaptive (full as long as the CPU and the shared ring allow)")
	f.Float64Var(&o.threshold, "compression-threshold", 0.2, "how full the shared ring must be for partial compression")
	f.Var(&o.keepFree, "keep-free", "what shall stay free on the disk: with less the ring does not grow")
	f.Var(&o.maxTotal, "max-total-size", "what all recordings and incidents may take; 0: no bound")
	f.Var(&o.maxWriteRate, "max-write-rate", "what one recording may write in a second; what exceeds it lowers the depth; 0: no bound")
	f.Var(&o.totalRate, "max-total-write-rate", "what all recordings together may write in a second, each the same part; what exceeds it lowers the depth; 0: no bound")
	f.DurationVar(&o.retainEnded, "retain-ended", 0, "how long recordings of ended JVMs are kept; 0: until space is needed")
	o.samplingMax.percent = session.DefaultSamplingShare
	f.Var(&o.samplingMax, "sampling-max-overhead", "what sampling may take, all threads together, as a share of wall time: above it the interval is lengthened; 0%: any (default 1% at the default interval, any at a chosen one)")
	f.Uint64Var(&o.samplingLive, "sampling-target-live-samples", 0, "how many samples of live objects are wanted: the interval follows, as far as --sampling-max-overhead allows it; 0: what --sampling gives")
	o.maxIncidents = agent.DefaultIncidents
	f.Var(&o.maxIncidents, "max-incidents-size", "what frozen windows may take, all together; 0: nothing is frozen by itself")
	f.DurationVar(&o.syncInterval, "sync-interval", time.Second, "how much a power loss may take")
	f.StringVar(&o.emergency, "emergency", "walk", "what to do when no collection comes in time for a sync point: walk, gc (a full one) or off")
	for _, name := range []string{"keep-free", "max-total-size", "max-write-rate", "max-total-write-rate", "sampling-max-overhead"} { // the help says it in words
		f.Lookup(name).DefValue = ""
	}
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell on stderr what the recorder does")
}

// addProbe adds the flags that are options of the probe, and may differ from JVM to JVM of one agent.
func (o *recordOptions) addProbe(c *cobra.Command) {
	o.sampling = session.DefaultSampling
	f := c.Flags()
	f.StringVar(&o.depth, "depth", "survivors", "samples, survivors or full")
	f.Var(&o.sampling, "sampling", "mean bytes between sampled allocations; 0 samples every allocation")
	f.IntVar(&o.stack, "stack-depth", 64, "frames of an allocation site, innermost first, 1 to 512")
	f.Var(&o.ring, "ring", "size of the shared ring: memory, per JVM, a power of two (default: 4 MiB, growing with the heap up to 64 MiB and 5% of what the cgroup has left)")
	f.DurationVar(&o.maxSync, "max-sync-pause", 250*time.Millisecond, "what a sync point may add to a pause: a heap that takes longer is recorded at depth samples; 0: any")
	f.StringVar(&o.names, "thread-names", "folded", "off, folded (each run of digits is one #) or full")
	f.Lookup("ring").DefValue = ""
	f.BoolVar(&o.untested, "allow-untested-jdk", false, "record JDK majors that heapcam was not tested with, if a self-check passes")
}

// check finds what is wrong before anything is started.
func (o *recordOptions) check() error {
	if _, ok := session.DepthNames[o.depth]; !ok {
		return usage("--depth %s: it is samples, survivors or full", o.depth)
	}
	if !slices.Contains([]string{"off", "folded", "full"}, o.names) {
		return usage("--thread-names %s: it is off, folded or full", o.names)
	}
	if o.stack < 1 || o.stack > 512 {
		return usage("--stack-depth %d: 1 to 512", o.stack)
	}
	if o.deviation <= 0 || o.deviation > 0.5 {
		return usage("--max-trace-size-deviation %v: it must be above 0 and at most 0.5", o.deviation)
	}
	if !slices.Contains([]string{"none", "partial", "full", "adaptive"}, o.compression) {
		return usage("--compression %s: it is none, partial, full or adaptive", o.compression)
	}
	if o.threshold <= 0 || o.threshold > 1 {
		return usage("--compression-threshold %v: it must be above 0 and at most 1", o.threshold)
	}
	if o.syncInterval <= 0 {
		return usage("--sync-interval %v: it must be above 0", o.syncInterval)
	}
	if o.maxSync != 0 && (o.maxSync < time.Millisecond || o.maxSync > time.Minute) {
		return usage("--max-sync-pause %v: 1ms to 1m, or 0 for any", o.maxSync)
	}
	if o.emergency != "walk" && o.emergency != "gc" && o.emergency != "off" {
		return usage("--emergency %s: it is walk, gc or off", o.emergency)
	}
	if o.sampling > 1<<30 {
		return usage("--sampling %s: at most 1 GiB", &o.sampling)
	}
	if o.maxTrace < 1<<20 {
		return usage("--max-trace-size %s: at least 1 MiB", &o.maxTrace)
	}
	if dir := o.outDir(); isRecording(dir) { // the ring folder of another JVM, most likely
		return usage("--out %s: %s is a recording itself; name the folder that recordings are in", dir, dir)
	}
	if o.retainEnded < 0 {
		return usage("--retain-ended %v: it is negative", o.retainEnded)
	}
	if o.ring != 0 && (o.ring < 1<<20 || o.ring > 1<<30 || o.ring&(o.ring-1) != 0) {
		return usage("--ring %s: it must be a power of two from 1 MiB to 1 GiB", &o.ring)
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
	var share float64
	if o.samplingMax.given {
		if share = float64(o.samplingMax.percent); share == 0 {
			share = -1
		}
	}
	return agent.Config{
		SamplingShare: share, LiveSamples: o.samplingLive,
		MaxIncidents: incidents, MaxTotal: int64(o.maxTotal), RetainEnded: o.retainEnded, MaxWriteRate: int64(o.maxWriteRate), MaxTotalWriteRate: int64(o.totalRate),
		Out: o.outDir(), MaxTraceSize: int64(o.maxTrace), Deviation: o.deviation, Compression: o.compression, Threshold: o.threshold,
		KeepFree: int64(o.keepFree), SyncInterval: o.syncInterval, Emergency: o.emergency,
		MaxRing: max(256<<20, uint64(o.ring)), Log: newLog(stderr, level),
	}
}

func newLog(w io.Writer, level zerolog.Level) zerolog.Logger {
	console := zerolog.ConsoleWriter{Out: ui.NewGuard(w), NoColor: true, TimeFormat: time.TimeOnly} // it quotes values of fields itself
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
	s := fmt.Sprintf("dir=%s,depth=%s,interval=%d", ringDir, o.depth, int64(o.sampling))
	if o.ring != 0 {
		s += fmt.Sprintf(",ring=%d", int64(o.ring))
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
	if x := os.Getenv("HEAPCAM_PROBE_OPTIONS"); x != "" { // for tests of the probe's own hooks
		s += "," + x
	}
	return s
}

// attachOptions are the same for attaching, which names the folder itself.
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

// outDirs are the folders that reading verbs look into.
func outDirs(flag string) []string {
	if flag != "" {
		return []string{flag}
	}
	return []string{defaultOut(), systemOut}
}

// summary is the line on one recorded JVM.
func summary(s session.Status) ui.Text {
	line := ui.Sprintf("%s (pid %d)", s.Name, s.PID)
	switch {
	case s.Phase == session.Refused:
		return line + ui.Sprintf(": not recorded: %s", ui.Prose(s.Reason))
	case s.Phase == session.Quarantined, s.Phase == session.GaveUp, s.Phase == session.Stopped && s.Reason != "":
		line += ui.Sprintf(": %s: %s;", s.Phase, ui.Prose(s.Reason))
	case s.Phase == session.GonePhase:
		line += " was killed;"
	}
	line += ui.Sprintf(" %s, %s in %s: %s", plural(s.Collections, "collection"), humanBytes(s.TraceBytes), plural(uint64(s.Files), "file"), ui.Path(s.Dir))
	if n := s.Dropped.RingEpochs + s.Dropped.StoreEpochs; n > 0 {
		line += ui.Sprintf(" (%s lost)", plural(n, "collection"))
	}
	return line
}
