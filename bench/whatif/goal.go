package main

import (
	"cmp"
	"fmt"
	"slices"
)

// goalRuns is how often each heap is run: the one in the middle counts.
const goalRuns = 3

// goal asks for the smallest heap that keeps collections to a share of the time, and runs each program as it was
// recorded and with the flags of the answer.
func (b *bench) goal(ps []program, goal string) error {
	fmt.Println("| program | heap before, MiB | after | collections before | after | share of time before | after | " +
		"predicted | longest pause, ms: before | after | predicted |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, p := range ps {
		rep, err := b.predict(p, "--goal", goal)
		if err != nil {
			return err
		}
		a := rep.Goal
		if a == nil || a.Best == nil {
			fmt.Printf("| %s | %d | no heap meets the goal |\n", p.name, p.young+p.old)
			continue
		}
		before, err := b.middle(p, options(p.young, p.old))
		if err != nil {
			return err
		}
		after, err := b.middle(p, a.Flags+" -XX:ParallelGCThreads=1")
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d | %d | %d + %d | %d + %d | %.1f %% | %.1f %% | %.1f (%.1f–%.1f) %% | %.0f | %.0f | %s "+
			"|\n",
			p.name, p.young+p.old, a.Best.Heap>>20, before.Minor, before.Full, after.Minor, after.Full,
			100*before.share(), 100*after.share(), 100*a.Best.GCShare.Value, 100*a.Best.GCShare.Low,
			100*a.Best.GCShare.High, 1000*before.Longest, 1000*after.Longest, milliseconds(a.Best.Longest))
		fmt.Printf("\n%s: met %v of %d heaps: %s\n\n", p.name, a.Met, a.Tried, a.Flags)
	}
	return nil
}

// share is the share of a run that its collections took.
func (r *result) share() float64 { return r.GCSeconds / r.Seconds }

// middle gives the run in the middle of several, by the share of its collections.
func (b *bench) middle(p program, opts string) (result, error) {
	var runs []result
	for range goalRuns {
		r, err := b.plain(p, opts)
		if err != nil {
			return r, err
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(x, y result) int { return cmp.Compare(x.share(), y.share()) })
	return runs[goalRuns/2], nil
}
