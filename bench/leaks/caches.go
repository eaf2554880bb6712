package main

import "maps"

// caches are the recordings of docs/benchmarks/2026-11-26-caches.md, all with default settings: caches that fill up
// while references are listed, and leaks that look like them.
var caches = map[string][]variant{
	// the keys are bounded, and half of them were seen
	"Memo":       {{jdk: "17", gc: "G1", heap: "96m", seconds: 50}},
	"MemoTime":   {{jdk: "25", gc: "G1", heap: "160m", seconds: 50}},
	"RouteStats": {{jdk: "25", gc: "Serial", heap: "64m", seconds: 50}},
	"SoftKeys":   {{jdk: "17", gc: "Parallel", heap: "128m", seconds: 50}},
	"SoftPurged": {{jdk: "17", gc: "Serial", heap: "64m", seconds: 50}},
	"SoftThumbs": {{jdk: "25", gc: "G1", heap: "64m", seconds: 50}},
	"UserCounts": {{jdk: "17", gc: "Parallel", heap: "64m", seconds: 50}},
	"WeakNames":  {{jdk: "17", gc: "G1", heap: "48m", seconds: 50}},
	// the first old ones have just left, or are about to leave
	"HalfEvicted": {{jdk: "25", gc: "G1", heap: "160m", seconds: 60}},
	"LastMinutes": {{jdk: "17", gc: "G1", heap: "128m", seconds: 60}},
	"LruWarm":     {{jdk: "17", gc: "Serial", heap: "96m", seconds: 60}},
	"Timeouts":    {{jdk: "25", gc: "Parallel", heap: "96m", seconds: 60}},
	"TtlBeside":   {{jdk: "17", gc: "G1", heap: "160m", seconds: 60}},
	"TtlLinked":   {{jdk: "25", gc: "Serial", heap: "96m", seconds: 60}},
	"TtlMap":      {{jdk: "17", gc: "Parallel", heap: "128m", seconds: 60}},
	"TwoHalves":   {{jdk: "25", gc: "G1", heap: "96m", seconds: 60}},
}

func init() { maps.Copy(table, caches) }
