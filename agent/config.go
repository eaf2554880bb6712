package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/tables"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/ringstore"
)

// Config says how to record. See Defaults for what zero values mean.
type Config struct {
	// Out is the folder that holds one ring folder per JVM; made if missing (mode 0700). Required.
	Out string
	// PullOut is the --out with which `heapcam pull` finds what is in Out, "" if it does without.
	PullOut string
	// Watch names the folders in which probes create their rings. The agent waits for one that does not exist.
	Watch []string
	// Spool names a folder (absolute) for the rings of JVMs that this agent cannot reach, and for recordings from
	// elsewhere, which are moved to Out; "": none. The agent waits for one that does not exist. For Linux.
	Spool string
	// MaxTraceSize is M of package ringstore, bytes per JVM; 0: 1 GiB. Deviation is d, 0 < d ≤ 0.5; 0: 0.25.
	MaxTraceSize int64
	Deviation    float64
	// Compression is none, partial, full or adaptive (package ringstore); "": adaptive. Threshold is how full the
	// shared ring must be, 0 to 1, for partial to compress; 0: 0.2. CompressionCPU is how many CPUs adaptive may spend
	// on average, all JVMs together, each the same part; 0: 0.5.
	Compression    string
	Threshold      float64
	CompressionCPU float64
	// KeepFree is how much of the file system of Out stays free, bytes; 0: recordings grow until the disk is full.
	KeepFree int64
	// SyncInterval is the time between two fsyncs: at most this much is lost on a power failure; 0: 1 s.
	SyncInterval time.Duration
	// MaxTotal bounds what all recordings and incidents below Out occupy, bytes; 0: no bound. RetainEnded is how long
	// rings of ended JVMs are kept; 0: until space is needed.
	MaxTotal    int64
	RetainEnded time.Duration
	// MaxWriteRate bounds what one JVM's recording writes, bytes a second, by lowering its depth; 0: no bound.
	// MaxTotalWriteRate bounds what all recordings together write, in the same way; what one does not use falls to the
	// others, each the same part. 0: no bound.
	MaxWriteRate, MaxTotalWriteRate int64
	// MaxCPU bounds the CPU time that this process takes, CPUs on average of some seconds, fairly: see package quota.
	// MaxMemory bounds what Go's runtime holds, bytes, shared rings apart. 0: no bound.
	MaxCPU    float64
	MaxMemory int64
	// MaxIncidents bounds what incidents occupy below Out, bytes; 0: 4 GiB. Negative: the agent freezes none by itself.
	MaxIncidents int64
	// Emergency is what the agent does when a sync point is due and the JVM does not collect: walk, gc or off; "":
	// walk.
	Emergency string
	// BudgetCPU is what the probe may cost a JVM, as a share of wall time (package governor). Above it the JVM is
	// recorded at a lower depth or with fewer samples. 0: session.DefaultBudget for JVMs that are recorded at most at
	// depth survivors and sampled at the default interval, any for the others. Negative: any.
	BudgetCPU float64
	// BudgetPause is what an ordinary epoch may add to a pause; 0: any.
	BudgetPause time.Duration
	// SamplingShare is what sampling callbacks, all threads together, may take of wall time; above it the sampling
	// interval is lengthened. 0: session.DefaultSamplingShare for JVMs that are sampled at the default interval, any
	// for the others. Negative: any.
	SamplingShare float64
	// LiveSamples is how many samples of live objects are wanted: the interval follows, as far as SamplingShare allows
	// it. 0: what it gives.
	LiveSamples uint64
	// MaxReferencePause is how long a reference listing that nobody asked for may stop the JVM; 0:
	// DefaultReferencePause. Negative: none is taken.
	MaxReferencePause time.Duration
	// ReferencesInterval is the time between two of them; 0: there is none without a cause. Negative: after half a
	// minute, then whenever the recording's age has doubled.
	ReferencesInterval time.Duration
	// MaxRing bounds the shared ring of one JVM, and with it the memory that the agent spends on it, bytes; 0: 256 MiB.
	MaxRing uint64
	// Poll is how often the agent reads watched folders when no file notification comes; 0: 20 ms for the first
	// seconds, then 500 ms.
	Poll time.Duration
	// Accept, if set, decides on each ring before it is acquired; false: it is not recorded.
	Accept func(path string) bool
	// Attributes, if set, gives the attributes of OpenTelemetry that the rules of heapcam.yaml set for a JVM.
	Attributes func(config.JVM) map[string]string
	// Pod, if set, gives what the API server of Kubernetes says of the pod with a UID.
	Pod func(uid string) map[string]string
	// Others, if set, gives the JVMs that are not recorded, for status.
	Others func() []api.Other
	// Switch names a file: while it is there nothing is recorded on this host ("": there is no such switch). Probes
	// poll it too.
	Switch string
	// Probe is the version of the probe that this agent would load. Status marks JVMs that have another one. "": it
	// marks none.
	Probe string
	// KeepFD, if set, gives the service manager a descriptor to keep after the agent's end, by name: one for each ring
	// that is memory without a name. f stays the agent's. DropFD ends that. Kept are the descriptors that it kept of
	// the agent before, by the same names; the agent closes them. For Linux: on Windows every ring has a name.
	KeepFD func(name string, f *os.File) error
	DropFD func(name string)
	Kept   []*os.File
	// Upload, if set, says to which bucket incidents go.
	Upload *upload.Config
	// Tables, if set, says how often tables are written, and to which bucket they go.
	Tables *tables.Config
	// Profiles, if set, says how often profiles of the heap are taken, and where they go.
	Profiles *profiles.Config
	// Judge, if set, reads the recording in a folder and says what leaks there. It is called after an incident was
	// frozen, once at a time, and takes no part in recording. The agent fills in Incident and Time.
	Judge func(ctx context.Context, dir string) (session.Verdict, error)
	// JudgeEvery is the time between two such calls for a running recording; 0: none.
	JudgeEvery time.Duration
	// Log receives the messages of package logs. The zero value is silent.
	Log zerolog.Logger
}

// Defaults of Config.
const (
	DefaultMaxTraceSize = 1 << 30
	DefaultDeviation    = 0.25
	DefaultIncidents    = 4 << 30
	defaultMaxRing      = 256 << 20
	// DefaultReferencePause is how long a reference listing may stop the JVM.
	DefaultReferencePause = 250 * time.Millisecond

	// IncidentsName is the folder of incidents below Config.Out. IncidentEvery is the least time between two that the
	// agent freezes of one recording by itself.
	IncidentsName = quota.IncidentsName
	IncidentEvery = 10 * time.Minute
)

// fill fills in defaults and validates.
func (c *Config) fill() error {
	if c.Out == "" {
		return errors.New("agent: no folder for recordings")
	}
	if c.MaxTraceSize == 0 {
		c.MaxTraceSize = DefaultMaxTraceSize
	}
	if c.Deviation == 0 {
		c.Deviation = DefaultDeviation
	}
	if c.Deviation < 0 || c.Deviation > 0.5 {
		return fmt.Errorf("agent: deviation %v is not in (0, 0.5]", c.Deviation)
	}
	if c.MaxTraceSize < 0 {
		return fmt.Errorf("agent: negative max trace size %d", c.MaxTraceSize)
	}
	switch c.Compression {
	case "":
		c.Compression = "adaptive"
	case "none", "partial", "full", "adaptive":
	default:
		return fmt.Errorf("agent: compression %q is neither none, partial, full nor adaptive", c.Compression)
	}
	if c.CompressionCPU == 0 {
		c.CompressionCPU = 0.5
	}
	switch c.Emergency {
	case "":
		c.Emergency = "walk"
	case "walk", "gc", "off":
	default:
		return fmt.Errorf("agent: emergency %q is neither walk, gc nor off", c.Emergency)
	}
	if c.KeepFree < 0 || c.SyncInterval < 0 {
		return errors.New("agent: keep_free or fsync_interval is negative")
	}
	if c.MaxTotal < 0 || c.RetainEnded < 0 || c.MaxWriteRate < 0 || c.MaxTotalWriteRate < 0 {
		return errors.New("agent: max_total_size, retain_ended, max_write_rate or max_total_write_rate is negative")
	}
	if c.MaxCPU < 0 || c.MaxMemory < 0 {
		return errors.New("agent: agent_max_cpu or agent_max_memory is negative")
	}
	if c.MaxCPU > 0 {
		c.CompressionCPU = min(c.CompressionCPU, c.MaxCPU/2)
	}
	if c.MaxIncidents == 0 {
		c.MaxIncidents = DefaultIncidents
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = time.Second
	}
	if c.BudgetCPU > 1 || c.BudgetPause < 0 {
		return fmt.Errorf("agent: budget of %v and %v: a share from 0 to 1 and a duration", c.BudgetCPU, c.BudgetPause)
	}
	if c.SamplingShare > 1 {
		return fmt.Errorf("agent: %v is not a share of time", c.SamplingShare)
	}
	if c.MaxReferencePause == 0 {
		c.MaxReferencePause = DefaultReferencePause
	}
	if c.MaxRing == 0 {
		c.MaxRing = defaultMaxRing
	}
	return nil
}

// Limits returns those settings that may change while the agent runs.
func (c *Config) Limits() session.Limits {
	return session.Limits{
		BudgetCPU: c.BudgetCPU, BudgetPause: c.BudgetPause, SamplingShare: c.SamplingShare, LiveSamples: c.LiveSamples,
		MaxReferencePause: max(c.MaxReferencePause, 0), ReferencesInterval: c.ReferencesInterval,
		MaxWriteRate: c.MaxWriteRate, MaxTotalWriteRate: c.MaxTotalWriteRate, MaxCPU: c.MaxCPU, MaxMemory: c.MaxMemory,
	}
}

// store returns how the ring folder dir is kept, which may occupy limit bytes.
func (c *Config) store(dir string, limit int64) ringstore.Config {
	return ringstore.Config{
		Dir: dir, MaxTraceSize: quota.TraceSize(limit, c.MaxTraceSize, c.Deviation), Deviation: c.Deviation,
		Compression: c.Compression, KeepFree: c.KeepFree, Threshold: c.Threshold, CPU: c.CompressionCPU,
	}
}
