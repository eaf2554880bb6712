package main

import "maps"

// unseen are the recordings of docs/benchmarks/2026-11-26-unseen.md: programs like real services, which were written
// after the detector. All but those with "0" have default settings.
var unseen = map[string][]variant{
	"Aggregates":  {{jdk: "17", gc: "G1", heap: "128m", seconds: 50}},
	"Breadcrumbs": {{jdk: "25", gc: "G1", heap: "128m", seconds: 50}},
	"ConfigTree":  {{jdk: "17", gc: "Parallel", heap: "96m", seconds: 55}},
	"DirectChurn": {{jdk: "25", gc: "Serial", heap: "48m", seconds: 50}},
	"FilterChain": {{jdk: "17", gc: "Parallel", heap: "128m", seconds: 45}},
	"HostStats":   {{jdk: "25", gc: "G1", heap: "96m", seconds: 55}},
	"KeyLocks":    {{jdk: "17", gc: "G1", heap: "96m", seconds: 50}},
	"MemTable":    {{jdk: "25", gc: "Parallel", heap: "128m", seconds: 50}},
	"MemoryAppender": {{jdk: "17", gc: "G1", heap: "48m", seconds: 60,
		flags: []string{"-XX:+ExitOnOutOfMemoryError"}}},
	"ResultPages":    {{jdk: "17", gc: "G1", heap: "96m", seconds: 50}},
	"RetryQueue":     {{jdk: "25", gc: "Serial", heap: "96m", seconds: 55}},
	"ScriptCache":    {{jdk: "17", gc: "G1", heap: "96m", seconds: 50}},
	"ScriptLru":      {{jdk: "25", gc: "G1", heap: "64m", seconds: 50}},
	"SocketRegistry": {{jdk: "17", gc: "G1", heap: "160m", seconds: 60}},
	"StatementPool":  {{jdk: "25", gc: "G1", heap: "48m", seconds: 50}},
	"TenantMeters":   {{jdk: "17", gc: "Serial", heap: "96m", seconds: 45, sampling: "0"}},
	"WeakViews":      {{jdk: "17", gc: "G1", heap: "64m", seconds: 50, sampling: "0"}},
	"WeightCache":    {{jdk: "25", gc: "Parallel", heap: "160m", seconds: 50}},
}

func init() { maps.Copy(table, unseen) }
