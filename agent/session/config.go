package session

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/trace"
)

// Defaults of sampling and of the budget.
const (
	// DefaultSampling is the mean number of bytes between two sampled allocations of a thread.
	DefaultSampling = 512 << 10
	// LeastSampling is the interval that it is shortened to while there is room in the budgets.
	LeastSampling = 64 << 10
	// DefaultSamplingShare is the share of wall time that sampling callbacks may then take.
	DefaultSamplingShare = 0.01
	// DefaultBudget is the share of wall time that the probe may take in all.
	DefaultBudget = 0.02
)

// Config says how a session records. All values are set: there are no defaults here.
type Config struct {
	MaxTraceSize int64         // M of package ringstore, bytes
	Deviation    float64       // d of package ringstore
	Compression  string        // none, partial, full or adaptive
	SyncInterval time.Duration // how much a power loss may take
	Emergency    string        // walk, gc or off
	Probe        string        // version of the probe that this agent would load; "": none

	ProfileEvery time.Duration // time between two profiles; 0: none
	TableEvery   time.Duration // time between two rows of tables; 0: none

	Limits    func() *Limits    // in force; another pointer when they have changed
	WriteRate *quota.SharedRate // of max_total_write_rate
	Process   *quota.Process
	Log       zerolog.Logger // New bounds what one session writes
}

// DepthNames are the depths by their names on the command line and in the probe's options.
var DepthNames = map[string]uint64{
	"samples": trace.DepthSamples, "survivors": trace.DepthSurvivors, "full": trace.DepthFull,
}

// DepthName returns the name of a depth, or "unknown".
func DepthName(d uint64) string {
	for n, v := range DepthNames {
		if v == d {
			return n
		}
	}
	return "unknown"
}
