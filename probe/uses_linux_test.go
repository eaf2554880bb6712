package probe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestUsesSeen compares which objects rewritten code reports as used with which it uses. Each random method is there
// twice: as it is, for the rewriter, and with a call in the source wherever an object is used. Between two calls of cut
// both must name the same objects. So a check that is left out, since the object was checked just before, loses none.
func TestUsesSeen(t *testing.T) {
	home := "/usr/lib/jvm/java-17-openjdk-amd64"
	if _, err := os.Stat(home + "/bin/javac"); err != nil {
		t.Skip("not run: uses of random programs (there is no JDK 17)")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: uses of random programs (there is no gcc)")
	}
	methods := 400
	if tiers.Full() {
		methods = 4000
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%.2000s", name, err, out)
		}
		return string(out)
	}
	var plain, told strings.Builder
	g := &generator{Rand: rand.New(rand.NewPCG(1, 2)), plain: &plain, told: &told}
	g.class(methods)
	for name, text := range map[string]string{
		"app/Used.java": plain.String(), "truth/Used.java": told.String(),
		"base/java/lang/HeapcamSites.java": usesHelper,
		"data/Node.java":                   usesNode, "run/Run.java": usesRun,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	javac := home + "/bin/javac"
	run(javac, "-proc:none", "-nowarn", "-d", "base", "--patch-module", "java.base=base",
		"base/java/lang/HeapcamSites.java")
	run(javac, "-proc:none", "-nowarn", "-d", "run", "--patch-module", "java.base=base", "data/Node.java",
		"run/Run.java", "app/Used.java", "truth/Used.java")
	src, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	gcc := []string{"-std=gnu11", "-O1", "-I" + src + "/src", src + "/testdata/rewrite.c"}
	for _, f := range []string{"rewrite", "rewritecode", "rewritemade", "rewriteuse", "rewriteflow", "bytecode"} {
		gcc = append(gcc, src+"/src/"+f+".c")
	}
	run("gcc", append(gcc, "-o", "rewrite")...)
	used := filepath.Join(dir, "run", "app", "Used.class")
	class, err := os.ReadFile(used)
	if err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	_ = binary.Write(&in, binary.BigEndian, uint32(len(class)))
	in.Write(class)
	c := exec.Command(filepath.Join(dir, "rewrite"), "uses", "all")
	c.Stdin = &in
	out, err := c.Output()
	if err != nil || len(out) < 5 {
		t.Fatalf("nothing was rewritten: %v", err)
	}
	if err := os.WriteFile(used, out[4:], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Log(run(home+"/bin/java", "-Xverify:all", "--patch-module", "java.base=base", "-cp", "run", "Run"))
}

const usesHelper = `package java.lang;
public class HeapcamSites {
    public static java.util.ArrayList<Object> log = new java.util.ArrayList<>();
    public static void use(Object o) { if (o != null) log.add(o); }
    public static void held(Object o) { use(o); }
    public static <T> T used(T o) { use(o); return o; }
    public static void cut() { log.add(null); }
}
`

const usesNode = `package data;
public class Node {
    public int x; public long l; public double d; public Node next; public int[] ints = new int[4];
    public long[] longs = new long[4]; public double[] doubles = new double[4]; public Node[] nodes = new Node[4];
    public static Node[] some(int seed) {
        java.util.Random r = new java.util.Random(seed);
        Node[] all = new Node[8];
        for (int i = 0; i < all.length; i++) all[i] = new Node();
        for (Node n : all) {
            n.x = r.nextInt(5) - 2; n.next = all[r.nextInt(8)];
            for (int i = 0; i < 4; i++) { n.ints[i] = r.nextInt(5) - 2; n.nodes[i] = all[r.nextInt(8)]; }
        }
        return all;
    }
}
`

const usesRun = `import data.Node;
import java.lang.reflect.Method;
import java.util.*;
public class Run {
    static List<Set<String>> log(Class<?> c, String name, int seed) throws Exception {
        Node[] n = Node.some(seed);
        Map<Object, String> names = new IdentityHashMap<>();
        for (int i = 0; i < n.length; i++) {
            names.put(n[i], "n" + i); names.put(n[i].ints, "i" + i); names.put(n[i].longs, "l" + i);
            names.put(n[i].doubles, "d" + i); names.put(n[i].nodes, "a" + i);
        }
        HeapcamSites.log.clear();
        c.getMethod(name, Node.class, Node.class, Node.class).invoke(null, n[0], n[1], n[2]);
        List<Set<String>> parts = new ArrayList<>();
        parts.add(new TreeSet<>());
        for (Object o : HeapcamSites.log)
            if (o == null) parts.add(new TreeSet<>());
            else if (names.containsKey(o)) parts.get(parts.size() - 1).add(names.get(o));
        return parts;
    }
    public static void main(String[] a) throws Exception {
        long said = 0, truth = 0, wrong = 0;
        Class<?> app = Class.forName("app.Used"), told = Class.forName("truth.Used");
        for (Method m : app.getMethods()) {
            if (!m.getName().startsWith("m")) continue;
            for (int seed = 0; seed < 12; seed++) {
                List<Set<String>> x = log(app, m.getName(), seed);
                said += HeapcamSites.log.size();
                List<Set<String>> y = log(told, m.getName(), seed);
                truth += HeapcamSites.log.size();
                if (!x.equals(y) && wrong++ < 5)
                    System.out.println(m.getName() + " " + seed + "\n  says " + x + "\n  uses " + y);
            }
        }
        System.out.println(said + " checks of " + truth + " uses, " + wrong + " runs are wrong");
        if (wrong > 0 || said == 0) System.exit(1);
    }
}
`

// generator writes the same methods twice: plain, and told, where each used object goes through a call.
type generator struct {
	*rand.Rand
	plain, told *strings.Builder
	names       int
}

type both struct{ plain, told string }

func (g *generator) class(methods int) {
	for i, b := range []*strings.Builder{g.plain, g.told} {
		fmt.Fprintf(b, "package %s;\nimport data.Node;\npublic class Used {\n", []string{"app", "truth"}[i])
	}
	for m := range methods {
		body := g.block(2)
		for i, b := range []*strings.Builder{g.plain, g.told} {
			fmt.Fprintf(b, "public static int m%d(Node a, Node b, Node c) {\nint s = 0;\n%sreturn s;\n}\n", m,
				[]string{body.plain, body.told}[i])
		}
	}
	g.plain.WriteString("}\n")
	g.told.WriteString("}\n")
}

// format fills both texts; each %s is the plain or the told text of the next argument.
func format(f string, args ...both) both {
	var p, t []any
	for _, a := range args {
		p, t = append(p, a.plain), append(t, a.told)
	}
	return both{fmt.Sprintf(f, p...), fmt.Sprintf(f, t...)}
}

func use(x both) both { return both{x.plain, "HeapcamSites.used(" + x.told + ")"} }

func (g *generator) one(options ...func() both) both { return options[g.IntN(len(options))]() }

func (g *generator) variable() both {
	v := string("abc"[g.IntN(3)])
	return both{v, v}
}

func (g *generator) index() both {
	i := fmt.Sprint(g.IntN(4))
	return both{i, i}
}

func (g *generator) node(depth int) both {
	if depth == 0 {
		return g.variable()
	}
	return g.one(g.variable,
		func() both { return format("%s.next", use(g.node(depth-1))) },
		func() both { return format("%s[%s]", use(format("%s.nodes", use(g.node(depth-1)))), g.index()) },
		func() both { return format("(%s > 0 ? %s : %s)", g.number(depth-1), g.node(depth-1), g.node(depth-1)) },
		func() both { return format("(%s = %s)", g.variable(), g.node(depth-1)) },
		func() both { return format("(%s.next = %s)", use(g.node(depth-1)), g.node(depth-1)) },
		func() both {
			return format("(%s[%s] = %s)", use(format("%s.nodes", use(g.variable()))), g.index(), g.node(depth-1))
		})
}

func (g *generator) number(depth int) both {
	return g.one(
		func() both { return format("%s.x", use(g.node(depth))) },
		func() both { return format("(int) (%s.l + %s.d)", use(g.node(depth)), use(g.variable())) },
		func() both { return format("%s[%s]", use(format("%s.ints", use(g.node(depth)))), g.index()) },
		func() both { return format("%s.length", use(format("%s.longs", use(g.node(depth))))) },
		func() both { return format("(%s + %s)", g.variableNumber(), g.variableNumber()) })
}

func (g *generator) variableNumber() both { return format("%s.x", use(g.variable())) }

func (g *generator) block(depth int) both {
	var out both
	for range 1 + g.IntN(5) {
		s := g.statement(depth)
		out = both{out.plain + s.plain, out.told + s.told}
	}
	return out
}

func (g *generator) fresh() both {
	g.names++
	n := fmt.Sprintf("v%d", g.names)
	return both{n, n}
}

func (g *generator) statement(depth int) both {
	simple := []func() both{
		func() both { return format("%s = %s;\n", g.variable(), g.node(2)) },
		func() both { return format("%s.next = %s;\n", use(g.node(1)), g.node(1)) },
		func() both {
			return format("%s[%s] = %s;\n", use(format("%s.nodes", use(g.variable()))), g.index(), g.node(1))
		},
		func() both { return format("%s.x += %s;\n", use(g.node(1)), g.number(1)) },
		func() both { return format("%s.l++;\n", use(g.node(1))) },
		func() both { return format("s += %s;\n", g.number(2)) },
		func() both {
			return format("%s[%s] += %s;\n", use(format("%s.longs", use(g.node(1)))), g.index(), g.number(0))
		},
		func() both {
			return format("%s.d = %s[%s] = s;\n", use(g.variable()), use(format("%s.doubles", use(g.variable()))),
				g.index())
		},
		func() both { return format("synchronized (%s) { s++; }\n", use(g.variable())) },
		func() both { return both{"HeapcamSites.cut();\n", "HeapcamSites.cut();\n"} },
	}
	if depth == 0 {
		return g.one(simple...)
	}
	loop := func() both {
		name := g.fresh()
		return format("for (int %s = 0; %s < 3; %s++) {\n%sif (%s == 2) break;\n%s}\n", name, name, name,
			g.block(depth-1), g.number(0), g.block(depth-1))
	}
	return g.one(append(simple,
		func() both { return format("if (%s > 0) {\n%s}\n", g.number(1), g.block(depth-1)) },
		func() both {
			return format("if (%s > 0 || %s < 0) {\n%s} else {\n%s}\n", g.number(0), g.number(1), g.block(depth-1),
				g.block(depth-1))
		},
		loop,
		func() both {
			v, w := g.fresh(), g.fresh()
			return format("{ long %s = s; Node %s = %s; %s += %s.l; s += (int) %s; }\n", w, v, g.node(1), w, use(v),
				w)
		},
		func() both {
			return format("switch (%s & 3) { case 0: %s break; case 1: %s default: %s }\n", g.number(1),
				g.block(depth-1), g.block(depth-1), g.block(depth-1))
		},
		func() both {
			return format("try {\n%sif (%s > 0) throw new IllegalStateException();\n%s} "+
				"catch (IllegalStateException %s) "+
				"{\n%s}\n", g.block(depth-1), g.number(1), g.block(depth-1), g.fresh(), g.block(depth-1))
		})...)
}
