package session

import (
	"time"

	"github.com/heapcam/heapcam/trace"
)

// Phase is what a session does, or how it ended.
type Phase string

// Phases.
const (
	Recording    Phase = "recording"
	Paused       Phase = "paused"
	Silent       Phase = "silent"      // the JVM is stopped or starved
	Refused      Phase = "refused"     // the probe does not record this JVM; see Reason
	EndedPhase   Phase = "ended"       // in order: exit or detachment
	KilledPhase  Phase = "killed"      // the JVM sent no end marker
	ProbeStopped Phase = "gave up"     // the probe stopped recording; see Reason
	Quarantined  Phase = "quarantined" // shared-ring protocol violation; see Reason
	Stopped      Phase = "stopped"     // the agent stopped reading
)

// Over says that nothing more will come.
func (p Phase) Over() bool {
	return p != Recording && p != Paused && p != Silent
}

// Of says that the session is that of the JVM with this pid (as we count), start and user; uid -1: any. A ring that
// names a process which is not there, or is of a user who is not the JVM's, is not: whoever made it would have the JVM
// taken for recorded.
func (s *Status) Of(pid int, startTicks uint64, uid int) bool {
	return s.PID == pid && s.StartTicks == startTicks && !s.Spool && !s.Unseen &&
		(uid < 0 || s.UID <= 0 || s.UID == uid)
}

// Status is what an agent knows of one session. Sizes are bytes, times ns. Counts since the recording began, whatever
// agents there were: a kill of one loses what it counted in its last ten seconds.
type Status struct {
	ID   string `json:"id"` // name of the ring folder
	Name string `json:"name"`
	// Resource has the attributes of OpenTelemetry that say whose it is (package agent/resource); nil: not known.
	Resource   trace.Resource `json:"resource,omitempty"`
	PID        int            `json:"pid"` // in the agent's namespace where known, else as the JVM sees it
	UID        int            `json:"uid"` // whose the ring is, as we count; -1: not known
	StartTicks uint64         `json:"start_ticks"`
	Session    string         `json:"session"`
	VM         string         `json:"vm"`
	Probe      string         `json:"probe"`
	// the agent has another probe: this JVM gets it when it is started anew
	Renew bool `json:"renew,omitempty"`
	// another agent holds allocation sampling: heap and pauses are recorded, sites are not
	NoSites bool `json:"no_sites,omitempty"`
	// its ring is in the spool folder, and this agent does not see its process: PID is the JVM's own
	Spool bool `json:"spool,omitempty"`
	// there was no process that its ring names: PID is the word of who made the ring
	Unseen bool `json:"unseen,omitempty"`
	// its shared ring is no memory: a collection may wait for the disk
	RingOnDisk bool `json:"ring_on_disk,omitempty"`
	// its shared ring is memory without a name (memfd), lost with JVM and agent
	RingMemfd  bool   `json:"ring_memfd,omitempty"`
	RingKept   bool   `json:"ring_kept,omitempty"` // but the service manager has a descriptor for the next agent
	Phase      Phase  `json:"phase"`
	Reason     string `json:"reason,omitempty"`
	DetachedBy string `json:"detached_by,omitempty"` // who asked for it; no agent attaches to it again unasked
	// Classes that the JVM still has to load anew, at the begin and end of a recording with exact sites.
	ClassesLeft uint64    `json:"classes_left,omitempty"`
	Dir         string    `json:"dir"`
	Since       time.Time `json:"since"` // when the probe began, also if an agent before did

	Depth       string `json:"depth"`
	Interval    uint64 `json:"sampling_bytes"`
	Collections uint64 `json:"collections"`                  // recorded
	Missed      uint64 `json:"missed_collections,omitempty"` // not recorded: the JVM posted no events
	LastGC      uint64 `json:"last_gc"`
	SyncPoints  uint64 `json:"sync_points"`
	// Of those: what this agent met that did not wait for a natural collection, and what a full collection, a loss or a
	// new agent forced. The rest are natural.
	SyncPointsEmergency uint64 `json:"sync_points_emergency"`
	SyncPointsForced    uint64 `json:"sync_points_forced"`
	// What the newest listing took of its pause, the longest one, and what the next is expected to take.
	LastSyncNS      uint64 `json:"last_sync_ns"`
	LongestSyncNS   uint64 `json:"longest_sync_ns"`
	PredictedSyncNS uint64 `json:"predicted_sync_ns"`
	Samples         uint64 `json:"samples"`
	// SitesCut counts samples whose stack was truncated to known callers, since the site table was full. SitesFolded
	// counts the least used frames that were evicted from it.
	SitesCut    uint64 `json:"sites_cut,omitempty"`
	SitesFolded uint64 `json:"sites_folded,omitempty"`
	LiveBytes   uint64 `json:"live_bytes"`
	Rotations   uint64 `json:"rotations"`
	Emergencies uint64 `json:"emergencies"` // sync points that did not wait for a natural collection
	// EmergenciesUnanswered of them had no answer within emergency.Timeout.
	EmergenciesUnanswered uint64 `json:"emergencies_unanswered"`
	TraceBytes            int64  `json:"trace_bytes"`   // on disk
	WrittenBytes          int64  `json:"written_bytes"` // since this agent began with it
	Files                 int    `json:"files"`
	RingBytes             uint64 `json:"ring_bytes"` // memory taken by the shared ring
	Backlog               uint64 `json:"backlog_bytes"`
	ProbeNS               uint64 `json:"probe_ns"`
	PauseNS               uint64 `json:"pause_ns"`
	SampleNS              uint64 `json:"sample_ns"`
	HelpersNS             uint64 `json:"helpers_ns"`    // CPU time of threads that help in pauses
	ReferencesNS          uint64 `json:"references_ns"` // stops of the JVM for reference listings
	UpNS                  uint64 `json:"up_ns"`         // since Since, when the three above it were read
	AgentCPUNS            uint64 `json:"agent_cpu_ns"`  // of this agent, since it began with it: CPU time
	AgentBytes            int64  `json:"agent_bytes"`   // of its memory, about
	Dropped               Drops  `json:"dropped"`
	// `dropped` is not known: no recorder left a figure, or it was killed before it did
	DroppedUnknown bool   `json:"dropped_unknown,omitempty"`
	StoreError     string `json:"store_error,omitempty"` // the last refusal of the store, or that the disk hangs
	StuckNS        uint64 `json:"stuck_ns,omitempty"`    // how long the disk has not answered; 0: it does
	GuaranteeMet   bool   `json:"guarantee_met"`         // M(1−d) of complete trace is kept after the first fill

	TraceLimit int64 `json:"trace_limit"` // what the ring may occupy: M(1+d), or what the disk leaves
	// Deviation is the effective one: more than configured where listings are large.
	Deviation float64 `json:"deviation,omitempty"`
	// NeededTraceSize is the max_trace_size that a sync point would need; 0 if the one in force does. Otherwise nothing
	// is listed.
	NeededTraceSize int64  `json:"needed_trace_size,omitempty"`
	DiskFull        bool   `json:"disk_full,omitempty"` // or keep_free is reached: the ring does not grow
	FilesEvicted    int64  `json:"files_evicted"`
	SyncPointsCut   int64  `json:"sync_points_cut"`
	ListingsSkipped uint64 `json:"listings_skipped"` // forced by consecutive full collections, beyond their budget
	// collections that a storm left without a listing and without objects
	ListingsLeftOut uint64 `json:"listings_left_out,omitempty"`
	StoreFaults     int64  `json:"store_faults"`
	HeldBytes       int64  `json:"held_bytes"`              // by a pull, of files that the ring has given up
	ForeignFiles    int    `json:"foreign_files,omitempty"` // ring files of other recordings in its folder

	// DepthAsked is the depth that the probe was loaded with, DepthWhy the newest cause of another one.
	DepthAsked string `json:"depth_asked,omitempty"`
	DepthWhy   string `json:"depth_why,omitempty"`
	// Switches is how often depth or sampling interval were changed to keep the budget, LastSwitch the newest and why.
	Switches   uint64 `json:"switches,omitempty"`
	LastSwitch string `json:"last_switch,omitempty"`

	// Budget is what the recording is held to now; nil: it is over, or the agent is older.
	Budget *Budget `json:"budget,omitempty"`

	Incident  string `json:"incident,omitempty"`  // the newest that was frozen by itself
	Incidents uint64 `json:"incidents,omitempty"` // frozen by themselves
	// that should have been; those too soon after another one are not meant
	IncidentsFailed uint64 `json:"incidents_failed,omitempty"`

	// Verdict on the newest incident, or on the recording as it ran; nil: there is none, or it is older than a day.
	Verdict *Verdict `json:"verdict,omitempty"`

	// Pauses by their length; status does not have them. nil: the session was never opened.
	Pauses *Pauses `json:"-"`

	// Quality of the last collection, in bytes and objects; nil while unknown.
	Quality *Quality `json:"coverage,omitempty"`
}

// Verdict is what the window of an incident, or of a running recording, shows.
type Verdict struct {
	Incident string    `json:"incident"` // its ID; "": the recording as it ran
	Time     time.Time `json:"time"`     // when it was found
	Headline string    `json:"headline"` // as `heapcam leaks` prints it
	CPUNS    uint64    `json:"cpu_ns"`   // CPU time that reading the incident took
	// Leaks are the largest verdicts, at most five; LeftOut is how many more there are.
	Leaks   []Leak `json:"leaks,omitempty"`
	LeftOut int    `json:"left_out,omitempty"`
	// Garbage of the newest reference listing of the incident; nil: it has none, or it does not say.
	Garbage *Garbage `json:"garbage,omitempty"`
}

// Garbage is what of old space nothing kept alive when references were listed, bytes: it was not collected yet.
type Garbage struct {
	GC   uint64    `json:"gc"`         // the collection before
	Time time.Time `json:"time"`       // when references were listed
	Old  uint64    `json:"old_bytes"`  // objects in old space, humongous ones too
	Dead uint64    `json:"dead_bytes"` // of these, what nothing kept alive
}

// Leak is a verdict on one data structure.
type Leak struct {
	Kind           string  `json:"kind"`    // leak, suspect or fills-heap
	Class          string  `json:"class"`   // of its largest part
	SiteID         string  `json:"site_id"` // of the allocation site, the same on every host
	BytesPerSecond float64 `json:"bytes_per_second"`
	// For tables (package agent/tables); status does not have them.
	OnsetFrom, OnsetTo       time.Time `json:"-"`
	Confidence               float64   `json:"-"`
	GrownBytes               uint64    `json:"-"`
	StackID, Stack, Sentence string    `json:"-"`
}

// Stuck says that the disk hangs, for this recording.
func (s *Status) Stuck() bool { return s.StuckNS > 0 }

// Drops counts what was lost, by cause.
type Drops struct {
	RingEpochs   uint64 `json:"ring_epochs"`   // the shared ring was full
	StoreEpochs  uint64 `json:"store_epochs"`  // the store refused
	FailedEpochs uint64 `json:"failed_epochs"` // moves and deaths dropped by a check or the guard
	Samples      uint64 `json:"samples"`
	// beyond the bound of a table; stack frames that a file refers to and whose definition is not known
	Definitions uint64 `json:"definitions"`
	Corrupt     uint64 `json:"corrupt"` // blocks that could not be decoded
	// reference listings of which some parts were lost
	References uint64 `json:"references"`
}

// Quality says of how much of the live heap the allocation site is known (package coverage).
type Quality struct {
	GC              uint64 `json:"gc"`
	Objects         uint64 `json:"objects"`
	Bytes           uint64 `json:"bytes"`
	Exact           uint64 `json:"exact_bytes"`
	Proven          uint64 `json:"proven_bytes"` // the innermost frame alone
	Inferred        uint64 `json:"inferred_bytes"`
	Few             uint64 `json:"candidates_bytes"` // one of two to four bytecodes has made them
	BeforeRecording uint64 `json:"before_recording_bytes"`
	Unknown         uint64 `json:"unknown_bytes"`
}
