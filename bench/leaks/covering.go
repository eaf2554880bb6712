package main

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// windows are those of the covering array, in seconds.
var windows = []int{20, 60, 300}

// covering gives the covering array: each program once in each window, the short ones first. Along the programs, JDK,
// collector, heap (tight or wide) and sampling (default or 0) take all 24 combinations in turn, so that each pair of
// two settings comes in every window. A part has the same settings as the whole: HEAPCAM_LEAKS_WINDOW names one window
// (all by default), only the programs that are set aside, or that are not.
func covering(only string) (all []recording) {
	hidden, err := hidden()
	if err != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(sources()))
	for w, seconds := range windows {
		if one := os.Getenv("HEAPCAM_LEAKS_WINDOW"); one != "" && one != strconv.Itoa(seconds) {
			continue
		}
		for i, n := range names {
			aside := slices.Contains(hidden, n)
			if !chosen(n) || only == "open" && aside || only == "aside" && !aside {
				continue
			}
			k := 7*i + 5*w // 7 and 24 have no common divisor
			v := variant{jdk: []string{"17", "25"}[k%2], gc: []string{"G1", "Parallel", "Serial"}[k/2%3],
				heap: "96m", sampling: []string{"default", "0"}[k/6%2], seconds: seconds}
			if own := table[n]; len(own) > 0 {
				v.heap, v.args, v.flags = own[0].heap, own[0].args, own[0].flags
			}
			if k/12%2 == 1 {
				v.heap = wide(v.heap)
			}
			all = append(all, recording{n, v})
		}
	}
	return all
}

// wide gives a heap that is four times as large, at most 1 GiB.
func wide(heap string) string {
	if strings.HasSuffix(heap, "g") {
		return heap
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(heap, "m"))
	return strconv.Itoa(min(4*n, 1024)) + "m"
}
