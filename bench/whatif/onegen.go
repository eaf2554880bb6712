package main

import "fmt"

// oneSizes are the heaps, in MiB, that the programs are run in without generations: a little above what lives, and
// twice that.
var oneSizes = map[string][]int{
	"serial": {23, 47}, "xml-transform": {23, 47}, "compiler-crypto": {79}, "xml-validation": {15, 31},
}

// oneOptions make Parallel compact in eden: there is next to no old space.
func oneOptions(heap int) string {
	return fmt.Sprintf("-XX:+UseParallelGC -XX:ParallelGCThreads=1 -XX:-UseAdaptiveSizePolicy -Xms%dm -Xmx%dm -Xmn%dm "+
		"-XX:SurvivorRatio=%d -XX:-UseGCOverheadLimit", heap+1, heap+1, heap, 2*heap-2)
}

// oneGeneration runs each program in such heaps, and prints what equations 1 and 2 give beside that.
func (b *bench) oneGeneration(ps []program) error {
	fmt.Println("| program | heap, MiB | full collections: real | by equation 1 | MiB between two: measured | " +
		"by equation 2 | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, p := range ps {
		for _, heap := range oneSizes[p.name] {
			r, err := b.plain(p, oneOptions(heap))
			if err != nil {
				return fmt.Errorf("%s in %d MiB: %w", p.name, heap, err)
			}
			half := fmt.Sprintf("%dKiB", heap<<9) // only the sum of the two counts
			rep, err := b.predict(p, "--young", half, "--old", half)
			if err != nil {
				return err
			}
			for _, o := range rep.OneGeneration {
				if o.Heap>>20 != uint64(heap) || r.Full == 0 {
					continue
				}
				between := float64(rep.Allocated) / float64(r.Full)
				ratio := "–"
				if o.ByMeans > 0 {
					ratio = fmt.Sprintf("%.2f", between/o.ByMeans)
				}
				fmt.Printf("| %s | %d | %d | %.0f | %.1f | %.1f | %s |\n", p.name, heap, r.Full, o.Collections,
					between/(1<<20), o.ByMeans/(1<<20), ratio)
				break
			}
		}
	}
	return nil
}
