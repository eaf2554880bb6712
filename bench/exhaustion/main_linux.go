// Command exhaustion measures how much longer a full heap takes to its OutOfMemoryError if the JVM is recorded: from
// the first collection after which 85 % of the heap are in use to the last one, by the JVM's own log. Pairs of runs,
// in turns, the recorded one first in every other pair.
//
//	go run ./bench/exhaustion [-pairs 15] [-jdk HOME] [-gc Serial] [-heap 96]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// program registers some 200 bytes beside 8 KB of garbage, until there is no memory. The sizes vary: if all were 192
// bytes, where the first object lies would decide how many lines of the CPU's cache each one takes, and the collector
// would be up to 1.7 times as slow or fast for a system property more.
const program = `public class Fill {
    static int n;
    static class Callback { Callback next; byte[] state = new byte[120 + (n = n * 1103515245 + 12345 >>> 1) % 61]; }
    static Callback first;
    static volatile Object sink;

    public static void main(String[] args) {
        try {
            while (true) {
                Callback c = new Callback();
                c.next = first;
                first = c;
                for (int i = 0; i < 8; i++) sink = new byte[1000];
            }
        } catch (OutOfMemoryError e) {
            first = null;
        }
    }
}
`

// full is the share of the heap that is in use from the first collection on that counts.
const full = 0.85

func main() {
	pairs := flag.Int("pairs", 15, "pairs of runs: recorded and not")
	home := flag.String("jdk", "/usr/lib/jvm/java-17-openjdk-amd64", "the JDK")
	gc := flag.String("gc", "Serial", "the collector")
	heap := flag.Int("heap", 96, "the heap, MiB")
	flag.Parse()
	if err := measure(*pairs, *home, *gc, *heap); err != nil {
		fmt.Fprintln(os.Stderr, "exhaustion:", err)
		os.Exit(1)
	}
}

func measure(pairs int, home, gc string, heap int) error {
	dir, err := os.MkdirTemp("", "heapcam-exhaustion.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "Fill.java")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(home, "bin", "javac"), "-d", dir, source).CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	log, rec := filepath.Join(dir, "gc.log"), filepath.Join(dir, "rec")
	java := []string{filepath.Join(home, "bin", "java"), "-XX:+Use" + gc + "GC", fmt.Sprintf("-Xmx%dm", heap),
		fmt.Sprintf("-Xms%dm", heap), "-Xlog:gc:file=" + log + ":uptime", "-cp", dir, "Fill"}
	recorded := append([]string{"bin/heapcam", "run", "--out", rec, "--"}, java...)
	var ratios, plains, shares, busiest []float64
	for i := range pairs {
		var took [2]float64 // not recorded, recorded
		for k := range 2 {
			which := (i + k) % 2
			if took[which], err = run([][]string{java, recorded}[which], log, heap); err != nil {
				return err
			}
		}
		share, ten, err := cost(rec)
		if err != nil {
			return err
		}
		ratios, plains = append(ratios, took[1]/took[0]), append(plains, took[0])
		shares, busiest = append(shares, share), append(busiest, ten)
		fmt.Printf("%2d: %.2f s, recorded %.2f s, ratio %.3f; heapcam's share of the run %.1f %%, of its busiest ten "+
			"seconds %.1f %%\n", i+1, took[0], took[1], took[1]/took[0], 100*share, 100*ten)
		if err := os.RemoveAll(rec); err != nil {
			return err
		}
	}
	fmt.Printf("%s, %s, %d MiB, %d pairs: %.2f s from a full heap to the OutOfMemoryError\n", filepath.Base(home), gc,
		heap, pairs, quantile(plains, 2))
	fmt.Printf("recorded: %.3f times as long (median; half of the pairs %.3f to %.3f); heapcam's share %.1f %%, of "+
		"the busiest ten seconds %.1f %% (most: %.1f %%)\n", quantile(ratios, 2), quantile(ratios, 1),
		quantile(ratios, 3), 100*quantile(shares, 2), 100*quantile(busiest, 2), 100*quantile(busiest, 4))
	return nil
}

// collection is a line of the log: seconds, and MiB in use after it.
var collection = regexp.MustCompile(`(?m)^\[([\d.]+)s\] GC\(\d+\) Pause .*->(\d+)M\(\d+M\)`)

// run gives how long the heap was full, in seconds.
func run(args []string, log string, heap int) (float64, error) {
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	first, last := -1.0, 0.0
	for _, m := range collection.FindAllStringSubmatch(string(b), -1) {
		at, _ := strconv.ParseFloat(m[1], 64)
		after, _ := strconv.ParseFloat(m[2], 64)
		if last = at; first < 0 && after >= full*float64(heap) {
			first = at
		}
	}
	if first < 0 || last <= first {
		return 0, fmt.Errorf("%s: the heap was never full", log)
	}
	return last - first, nil
}

// cost gives heapcam's share of a recording's time, and of its busiest ten seconds, by its own clock.
func cost(rec string) (share, busiest float64, err error) {
	out, err := exec.Command("bin/heapcam", "cost", "--json", rec).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("heapcam cost: %w", err)
	}
	var r struct {
		Total struct {
			Span  float64 `json:"span_ns"`
			Probe float64 `json:"probe_ns"`
			Sync  float64 `json:"sync_ns"`
			Walks float64 `json:"walks_ns"`
			Taken float64 `json:"sampling_ns"`
		} `json:"total"`
		Busiest struct {
			Span    float64 `json:"span_ns"`
			Stopped float64 `json:"stopped_ns"`
		} `json:"busiest"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, 0, err
	}
	t := &r.Total
	return (t.Probe + t.Sync + t.Walks + t.Taken) / t.Span, r.Busiest.Stopped / r.Busiest.Span, nil
}

// quantile gives quartile q of v.
func quantile(v []float64, q int) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[(len(v)-1)*q/4]
}
