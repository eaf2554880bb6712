package tables

import "github.com/heapcam/heapcam/trace"

// Whose says whose a row is. All of it may be empty.
type Whose struct {
	Service     string `json:"service" parquet:"service,dict"`
	Version     string `json:"version" parquet:"version,dict"`
	Namespace   string `json:"namespace" parquet:"namespace,dict"`     // of the service, else of Kubernetes
	Environment string `json:"environment" parquet:"environment,dict"` // deployment.environment.name
	Cluster     string `json:"cluster" parquet:"cluster,dict"`
	Instance    string `json:"instance" parquet:"instance,dict"` // instance id, else pod, container, unit or user
	Host        string `json:"host" parquet:"host,dict"`
	Pod         string `json:"pod" parquet:"pod,dict"`
	Container   string `json:"container" parquet:"container,dict"`
	Unit        string `json:"unit" parquet:"unit,dict"`
	Recording   string `json:"recording" parquet:"recording,dict"` // its session, which no two recordings share
}

// Of gives whose the rows of a recording are.
func Of(r trace.Resource, session string) Whose {
	return Whose{Service: r[trace.AttrService], Version: r[trace.AttrVersion], Namespace: r.Namespace(),
		Environment: r[trace.AttrEnv], Cluster: r[trace.AttrCluster], Instance: r.Instance(), Host: r[trace.AttrHost],
		Pod: r[trace.AttrPod], Container: r[trace.AttrContainer], Unit: r[trace.AttrUnit], Recording: session}
}

// SiteRow is a class at an allocation site, of the table "sites". Stacks are in a table of their own.
type SiteRow struct {
	Whose
	TimeMS       int64  `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"` // end of the collection
	GC           uint64 `json:"gc" parquet:"gc"`
	Class        string `json:"class" parquet:"class,dict"`
	SiteID       string `json:"site_id" parquet:"site_id,dict"`   // empty: the site is not known
	StackID      string `json:"stack_id" parquet:"stack_id,dict"` // in the table "stacks"
	Objects      uint64 `json:"objects" parquet:"objects"`        // live after the collection
	Bytes        uint64 `json:"bytes" parquet:"bytes"`
	AllocObjects uint64 `json:"alloc_objects" parquet:"alloc_objects"` // in the window up to it
	AllocBytes   uint64 `json:"alloc_bytes" parquet:"alloc_bytes"`
	// Of the live objects: the innermost frame is exact, and the callers are drawn among samples (--sites exact).
	Drawn uint64 `json:"callers_drawn" parquet:"callers_drawn"`
}

// StackRow is a stack, of the table "stacks".
type StackRow struct {
	StackID string `json:"stack_id" parquet:"stack_id"`
	Stack   string `json:"stack" parquet:"stack"` // innermost first, "; " between
}

// LeakRow is a verdict, of the table "leaks".
type LeakRow struct {
	Whose
	TimeMS         int64   `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"` // end of the window
	OnsetFromMS    int64   `json:"onset_from_ms" parquet:"onset_from_ms,timestamp(millisecond)"`
	OnsetToMS      int64   `json:"onset_to_ms" parquet:"onset_to_ms,timestamp(millisecond)"`
	Kind           string  `json:"kind" parquet:"kind,dict"`
	Class          string  `json:"class" parquet:"class,dict"`
	SiteID         string  `json:"site_id" parquet:"site_id,dict"`
	StackID        string  `json:"stack_id" parquet:"stack_id,dict"`
	Confidence     float64 `json:"confidence" parquet:"confidence"`
	BytesPerSecond float64 `json:"bytes_per_second" parquet:"bytes_per_second"`
	GrownBytes     uint64  `json:"grown_bytes" parquet:"grown_bytes"`
	Sentence       string  `json:"sentence" parquet:"sentence"`
	// The innermost frame of the site is exact (--sites exact), and its callers are those of the most samples: their
	// share. 0: the stack is the site's own
	CallersShare float64 `json:"callers_share" parquet:"callers_share"`
}

// CollectionRow is a collection, of the table "collections".
type CollectionRow struct {
	Whose
	TimeMS    int64  `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"` // end of the pause or cycle
	GC        uint64 `json:"gc" parquet:"gc"`
	JVMGC     uint64 `json:"jvm_gc" parquet:"jvm_gc"` // as the JVM numbers it
	Kind      string `json:"kind" parquet:"kind,dict"`
	Cause     string `json:"cause" parquet:"cause,dict"`
	PauseNS   uint64 `json:"pause_ns" parquet:"pause_ns"`     // of a cycle: its pauses together
	ProbeNS   uint64 `json:"probe_ns" parquet:"probe_ns"`     // of the pause, what heapcam took
	UsedBytes uint64 `json:"used_bytes" parquet:"used_bytes"` // all spaces, after it
	Known     bool   `json:"known" parquet:"known"`           // objects and bytes are known
	Objects   uint64 `json:"objects" parquet:"objects"`       // live after it
	Bytes     uint64 `json:"bytes" parquet:"bytes"`
}
