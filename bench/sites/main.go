// Command sites models a tracker of allocation sites by class (ASC of VEE'10) on recordings with exact sites: a class
// of its own for each site that allocates a class, so that the class pointer says the site. No unmodified JVM does it.
// `go run ./bench/sites RECORDING...` prints, for the live objects after the last collection of each, how many classes
// have objects with a site, how many classes the tracker adds, and how many of these suffice for 90 and 99 % of them.
//
// `go run ./bench/sites -born RECORDING...` prints of how many new objects such recordings know the site, and compares
// it with the stacks of samples; with -more also of which types they do not know it.
//
// Hashes.java measures what identity hashes that carry a site cost a program that uses them (`--sites hash`).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// group is a node of `heapcam group --json`.
type group struct {
	Key      string  `json:"key"`
	Objects  float64 `json:"objects"`
	Children []group `json:"children"`
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: sites [-born|-more] RECORDING...")
		os.Exit(2)
	}
	if os.Args[1] == "-born" || os.Args[1] == "-more" {
		bornTable(os.Args[2:], os.Args[1] == "-more")
		return
	}
	fmt.Println("| recording | objects | with a site | classes of these | classes added | for 90 % | for 99 % |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range os.Args[1:] {
		if err := model(r); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", r, err)
		}
	}
}

func model(recording string) error {
	c := exec.Command("bin/heapcam", "group", "--by", "type,site(1)", "--json", recording)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return err
	}
	var g struct{ Tree group }
	if err := json.Unmarshal(out, &g); err != nil {
		return err
	}
	classes, added, known, owned := 0, 0, 0.0, 0.0
	var more []float64 // objects of sites that need a class
	for _, t := range g.Tree.Children {
		var sites []float64
		for _, s := range t.Children {
			if !strings.HasPrefix(s.Key, "(") && s.Objects >= 1 { // not (site unknown) and the like
				sites = append(sites, s.Objects)
			}
		}
		if len(sites) == 0 {
			continue
		}
		slices.Sort(sites)
		slices.Reverse(sites)
		classes++
		added += len(sites) - 1
		owned += sites[0] // the largest site keeps the class
		more = append(more, sites[1:]...)
		for _, n := range sites {
			known += n
		}
	}
	slices.Sort(more)
	slices.Reverse(more)
	enough := func(share float64) int {
		sum := owned
		for i, n := range more {
			if sum >= share*known {
				return i
			}
			sum += n
		}
		return len(more)
	}
	fmt.Printf("| %s | %.0f | %.1f %% | %d | %d | %d | %d |\n", filepath.Base(recording), g.Tree.Objects,
		100*known/max(g.Tree.Objects, 1), classes, added, enough(0.9), enough(0.99))
	return nil
}
