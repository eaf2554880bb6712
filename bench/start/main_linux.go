// Command start measures what recording costs a JVM that runs for a second: CPU of JVM and recorder, and time, against
// the same program without heapcam, in turns. With -exact the program is javac, which loads some 1,200 classes, and
// --sites exact is measured against --depth full.
//
//	go run ./bench/start [-rounds 15] [-jdk HOME] [-gc Parallel] [-exact]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const program = `public class Start {
    static Object[] kept = new Object[1000];

    public static void main(String[] args) {
        long end = System.nanoTime() + 700_000_000L, n = 0;
        while (System.nanoTime() < end) kept[(int) (n++ % kept.length)] = new byte[1000];
    }
}
`

// cost is what one run took, in seconds.
type cost struct{ cpu, wall float64 }

func main() {
	rounds := flag.Int("rounds", 15, "rounds; each runs the program without heapcam, with it, and again without")
	home := flag.String("jdk", "/usr/lib/jvm/java-17-openjdk-amd64", "the JDK")
	gc := flag.String("gc", "Parallel", "the collector")
	exact := flag.Bool("exact", false, "javac with --sites exact, against javac with --depth full")
	flag.Parse()
	if err := measure(*rounds, *home, *gc, *exact); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func measure(rounds int, home, gc string, exact bool) error {
	dir, err := os.MkdirTemp("", "heapcam-start.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "Start.java")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(home, "bin", "javac"), "-d", dir, source).CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	java := []string{filepath.Join(home, "bin", "java"), "-XX:+Use" + gc + "GC", "-Xmx256m"}
	record := func(out string, flags ...string) []string {
		return append(append([]string{"bin/heapcam", "run", "--out", out}, flags...), "--")
	}
	without, with := "not recorded", "recorded"
	if exact {
		without, with = "--depth full", "--sites exact"
		java = append(java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", dir, source)
	} else {
		java = append(java, "-cp", dir, "Start")
	}
	var plain, recorded, again []cost
	for round := range rounds {
		out := filepath.Join(dir, fmt.Sprint("rec", round))
		base, other := java, append(record(out), java...)
		if exact {
			base = append(record(out, "--depth", "full"), java...)
			other = append(record(out, "--sites", "exact"), java...)
		}
		for _, x := range []struct {
			to   *[]cost
			args []string
		}{{&plain, base}, {&recorded, other}, {&again, base}} {
			c, err := run(x.args)
			if err != nil {
				return err
			}
			*x.to = append(*x.to, c)
		}
	}
	fmt.Printf("medians of %d rounds, %s, %s: CPU and wall time\n", rounds, filepath.Base(home), gc)
	for _, x := range []struct {
		name string
		of   []cost
	}{{without, plain}, {with, recorded}, {without, again}} {
		fmt.Printf("%-14s%.3f s  %.3f s\n", x.name, median(x.of, cpuOf), median(x.of, wallOf))
	}
	var share []cost
	for i, c := range recorded {
		share = append(share, cost{2 * c.cpu / (plain[i].cpu + again[i].cpu),
			2 * c.wall / (plain[i].wall + again[i].wall)})
	}
	fmt.Printf("median of the rounds' ratios: %.2f of CPU, %.2f of time\n", median(share, cpuOf), median(share, wallOf))
	var more []cost
	for i := range recorded {
		more = append(more, cost{recorded[i].cpu - (plain[i].cpu+again[i].cpu)/2,
			recorded[i].wall - (plain[i].wall+again[i].wall)/2})
	}
	fmt.Printf("added, median of the rounds' differences: %.0f ms of CPU, %.0f ms\n", 1e3*median(more, cpuOf),
		1e3*median(more, wallOf))
	return nil
}

// run gives what a command and those that it waited for took.
func run(args []string) (cost, error) {
	c := exec.Command(args[0], args[1:]...)
	begin := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		return cost{}, fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	s := c.ProcessState
	return cost{(s.UserTime() + s.SystemTime()).Seconds(), time.Since(begin).Seconds()}, nil
}

func cpuOf(c cost) float64  { return c.cpu }
func wallOf(c cost) float64 { return c.wall }

func median(all []cost, of func(cost) float64) float64 {
	v := make([]float64, len(all))
	for i, c := range all {
		v[i] = of(c)
	}
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
