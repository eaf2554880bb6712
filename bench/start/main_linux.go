// Command start measures what recording costs a JVM that runs for a second: CPU of JVM and recorder, and time, against
// the same program without heapcam, in turns.
//
//	go run ./bench/start [-rounds 15] [-jdk HOME] [-gc Parallel]
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
	flag.Parse()
	if err := measure(*rounds, *home, *gc); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func measure(rounds int, home, gc string) error {
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
	java := []string{filepath.Join(home, "bin", "java"), "-XX:+Use" + gc + "GC", "-Xmx256m", "-cp", dir, "Start"}
	var plain, recorded, again []cost
	for round := range rounds {
		out := filepath.Join(dir, fmt.Sprint("rec", round))
		for _, x := range []struct {
			to   *[]cost
			args []string
		}{
			{&plain, java},
			{&recorded, append([]string{"bin/heapcam", "run", "--out", out, "--"}, java...)},
			{&again, java},
		} {
			c, err := run(x.args)
			if err != nil {
				return err
			}
			*x.to = append(*x.to, c)
		}
	}
	fmt.Printf("medians of %d rounds, %s, %s: CPU and wall time\n", rounds, filepath.Base(home), gc)
	fmt.Printf("not recorded  %.3f s  %.3f s\n", median(plain, cpuOf), median(plain, wallOf))
	fmt.Printf("recorded      %.3f s  %.3f s\n", median(recorded, cpuOf), median(recorded, wallOf))
	fmt.Printf("not recorded  %.3f s  %.3f s\n", median(again, cpuOf), median(again, wallOf))
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
