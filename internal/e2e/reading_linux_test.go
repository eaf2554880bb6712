package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// groupNode and change are what `group --json` and `diff --json` print.
type groupNode struct {
	Key       string
	Objects   uint64
	Bytes     uint64
	Estimated bool
	ObjLow    uint64 `json:"objects_low"`
	ObjHigh   uint64 `json:"objects_high"`
	Children  []*groupNode
}

func (n *groupNode) child(t *testing.T, key string) *groupNode {
	t.Helper()
	for _, c := range n.Children {
		if strings.HasPrefix(c.Key, key) {
			return c
		}
	}
	t.Fatalf("%s has no group %s", n.Key, key)
	return nil
}

type groupReply struct {
	GC   uint64
	Tree *groupNode
}

type bounded struct{ Value, Low, High uint64 }

type changes struct{ Died, Permanent, Born, Before, After bounded }

type change struct {
	Key            string
	Objects, Bytes changes
	Children       []*change
}

type diffReply struct {
	Tree *change
	Lost uint64 `json:"identity_lost"`
}

// TestGroupAndDiff asks the JVM itself, by jcmd, three times: `group --by type` of that collection has as many objects
// and bytes of every class, and `diff --by type` between two of them says what lies between the JVM's histograms.
func TestGroupAndDiff(t *testing.T) {
	tiers.Gate(t, "groups and differences of a real heap against the oracle")
	t.Parallel()
	for _, c := range []struct {
		major int
		gc    string
	}{{25, "G1"}, {17, "Parallel"}} {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			p := program{major: c.major, gc: c.gc, main: "Hold", heap: "128m", limit: "64MiB",
				flags: []string{"--emergency", "off"}}
			r := p.start(t)
			var jcmd []map[string][2]uint64
			for i := range 3 {
				await(t, "ready", func() bool { return strings.Count(r.stdout.String(), "ready\n") > i })
				jcmdOf := filepath.Join(jdk(t, c.major), "bin", "jcmd")
				for range runs(c.gc) {
					if out, err := exec.Command(jcmdOf, strconv.Itoa(r.pid()), "GC.run").CombinedOutput(); err != nil {
						t.Fatalf("jcmd: %v\n%s", err, out)
					}
				}
				out, err := exec.Command(jcmdOf, strconv.Itoa(r.pid()), "GC.class_histogram").CombinedOutput()
				if err != nil {
					t.Fatalf("jcmd: %v\n%s", err, out)
				}
				jcmd = append(jcmd, parseHistogram(string(out)))
				r.stdinW.WriteString("\n")
			}
			r.finish(t)
			rec := r.recorded(t)
			var rep reportReply
			heapcamJSON(t, &rep, "report", rec.dir)
			var asked []string
			for _, gc := range rep.Collections {
				if strings.Contains(gc.Cause, "Heap Inspection") || strings.Contains(gc.Cause, "Diagnostic Command") {
					asked = append(asked, strconv.FormatUint(gc.GC, 10))
				}
			}
			if n := runs(c.gc); n > 0 { // the last of each
				var last []string
				for i := n - 1; i < len(asked); i += n {
					last = append(last, asked[i])
				}
				asked = last
			}
			if len(asked) != len(jcmd) {
				t.Fatalf("%d of %d heap inspections were recorded", len(asked), len(jcmd))
			}
			// On 17 dead wood that a full collection leaves is filled with int[] and Object, which the JVM's own
			// histogram does not count alike.
			padded := func(name string) bool {
				return filler(name) || c.major == 17 && (name == "int[]" || name == "java.lang.Object")
			}
			fold2 := func(h map[string][2]uint64) map[string][2]uint64 {
				out := map[string][2]uint64{}
				for n, v := range h {
					n = fold(n)
					out[n] = [2]uint64{out[n][0] + v[0], out[n][1] + v[1]}
				}
				return out
			}
			compared := 0
			for k, at := range asked {
				var g groupReply
				heapcamJSON(t, &g, "group", rec.dir, "--at", at, "--by", "type", "--json")
				got := map[string][2]uint64{}
				for _, n := range g.Tree.Children {
					got[n.Key] = [2]uint64{n.Objects, n.Bytes}
				}
				want, got := fold2(jcmd[k]), fold2(got)
				for n, w := range want {
					if !padded(n) {
						if compared++; got[n] != w {
							t.Errorf("collection %s, %s: the JVM counts %v, group %v", at, n, w, got[n])
						}
					}
				}
				for n, v := range got {
					if _, ok := want[n]; !ok && !padded(n) {
						t.Errorf("collection %s, %s: group has %v, the JVM none", at, n, v)
					}
				}
				if k == 0 {
					continue
				}
				var d diffReply
				heapcamJSON(t, &d, "diff", rec.dir, "--from", asked[k-1], "--to", at, "--by", "type", "--json")
				before := fold2(jcmd[k-1])
				sums := map[string][2]int64{}
				for _, x := range d.Tree.Children {
					n := fold(x.Key)
					sums[n] = [2]int64{sums[n][0] + int64(x.Objects.After.Value) - int64(x.Objects.Before.Value),
						sums[n][1] + int64(x.Bytes.After.Value) - int64(x.Bytes.Before.Value)}
					for _, c := range []changes{x.Objects, x.Bytes} {
						if c.Died.Low > c.Before.Value || c.Permanent.High < c.Permanent.Low ||
							c.Born.Low > c.After.Value {
							t.Errorf("%s: %+v", x.Key, c)
						}
					}
				}
				for n, w := range want {
					if diff := [2]int64{
						int64(w[0]) - int64(before[n][0]), int64(w[1]) - int64(before[n][1])}; !padded(n) &&
						sums[n] != diff {
						t.Errorf("from %s to %s, %s: the histograms differ by %v, diff says %v", asked[k-1], at, n,
							diff, sums[n])
					}
				}
				t.Logf("%s: identity lost for %d objects", at, d.Lost)
			}
			if compared < 300 {
				t.Errorf("only %d classes compared", compared)
			}
		})
	}
}

// runs is how many collections jcmd asks for before an inspection: Parallel of 17 tells no agent of the one that the
// inspection itself makes, so the state is that of the collection before, the second since what cleaners hold goes with
// the first.
func runs(gc string) int {
	if gc == "Parallel" {
		return 2
	}
	return 0
}

// TestBuggyStack is ICPE'18 §5.3.1 on a real JVM: a stack that keeps what it popped. With every allocation a sample the
// sites are counted exactly; at 64 KiB the intervals hold the truth.
func TestBuggyStack(t *testing.T) {
	tiers.Gate(t, "stacks of a JVM with a known fault")
	t.Parallel()
	for _, c := range []struct{ sampling, n, m, rest string }{
		{"0", "100000", "10000", "40"}, {"64KiB", "1000000", "100000", "0"}} {
		t.Run(c.sampling, func(t *testing.T) {
			p := program{major: 17, gc: "Parallel", main: "BuggyStack", args: []string{c.n, c.m, c.rest}, heap: "256m",
				limit: "128MiB", flags: []string{"--emergency", "off", "--sampling", c.sampling,
					"--max-sync-pause", "0", "--shm-size", "64MiB"}}
			r := p.start(t)
			r.finish(t)
			rec := r.recorded(t)
			n, _ := strconv.ParseUint(c.n, 10, 64)
			m, _ := strconv.ParseUint(c.m, 10, 64)
			var rep reportReply
			heapcamJSON(t, &rep, "report", rec.dir)
			var at []string
			for _, gc := range rep.Collections {
				if strings.Contains(gc.Cause, "System.gc") {
					at = append(at, strconv.FormatUint(gc.GC, 10))
				}
			}
			if len(at) < 4 {
				t.Fatalf("collections %v", at)
			}
			at = at[len(at)-4:]
			item := func(gc string) *groupNode {
				var g groupReply
				heapcamJSON(t, &g, "group", rec.dir, "--at", gc, "--by", "type, site(1)", "--json")
				return g.Tree.child(t, "BuggyStack$Item")
			}
			// Figures 13 and 14: the stack has been emptied, and all items live; from one site.
			full, empty, again := item(at[1]), item(at[2]), item(at[3])
			for _, x := range []*groupNode{full, empty, again} {
				if x.Objects != n || x.Bytes != n*24 || x.Estimated {
					t.Fatalf("%+v", x)
				}
			}
			near := func(x *groupNode, key string, want uint64) {
				t.Helper()
				s := x.child(t, key)
				if !s.Estimated {
					s.ObjLow, s.ObjHigh = s.Objects, s.Objects
				}
				lost := uint64(0) // samples that the recording lost
				if c.sampling == "0" {
					lost = want / 10
				}
				if s.ObjLow > want || s.ObjHigh+lost < want {
					t.Errorf("%s: %d to %d objects, truth %d", s.Key, s.ObjLow, s.ObjHigh, want)
				}
				t.Logf("%s: %d (%d to %d), truth %d", s.Key, s.Objects, s.ObjLow, s.ObjHigh, want)
			}
			near(full, "BuggyStack.fill", n)
			near(empty, "BuggyStack.fill", n)
			near(again, "BuggyStack.fill", n-m)
			near(again, "BuggyStack.refill", m)
			// Figures 16 and 17: between empty and pushed again, as many died as were born, and the rest is permanent.
			var d diffReply
			heapcamJSON(t, &d, "diff", rec.dir, "--from", at[2], "--to", at[3], "--by", "type", "--json")
			for _, x := range d.Tree.Children {
				if x.Key != "BuggyStack$Item" {
					continue
				}
				o := x.Objects
				if o.Died.Low > m || o.Died.High < m || o.Born.Low > m || o.Born.High < m || o.Permanent.Low > n-m ||
					o.Permanent.High < n-m || o.Before.Value != n || o.After.Value != n {
					t.Errorf("died %+v, permanent %+v, born %+v", o.Died, o.Permanent, o.Born)
				}
				t.Logf("died %v, permanent %v, born %v", o.Died, o.Permanent, o.Born)
			}
		})
	}
}
