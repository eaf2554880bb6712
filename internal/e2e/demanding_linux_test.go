package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/tiers"
)

// demandingAgent is an agent of the application that wants allocation sampling, which the JVM gives to one agent
// only. Its option says when it asks, and what it does if it is refused: "onload" and "vminit" end the JVM, "tolerant"
// continues, "slow" never asks and keeps VMInit busy for 300 ms. "later" asks as soon as the file $DEMAND exists, every
// 50 ms until it succeeds.
const demandingAgent = `
#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile long samples;
static jvmtiEnv *ti;
static char mode[20];
static int ask(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_sampled_object_alloc_events = 1;
    if ((*ti)->AddCapabilities(ti, &c)) return 0;
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    return 1;
}
static void JNICALL on_sample(jvmtiEnv *e, JNIEnv *jni, jthread t, jobject o, jclass k, jlong size) { samples++; }
static void JNICALL on_death(jvmtiEnv *e, JNIEnv *jni) {
    fprintf(stderr, "other agent: %s\n", samples ? "sampled" : "no samples");
}
static void JNICALL later(jvmtiEnv *e, JNIEnv *jni, void *arg) {
    while (access(getenv("DEMAND"), F_OK)) usleep(50000);
    for (int i = 0; !ask(); i++) {
        if (!i) fprintf(stderr, "other agent: refused\n");
        usleep(50000);
    }
    fprintf(stderr, "other agent: has it\n");
}
static void JNICALL on_init(jvmtiEnv *e, JNIEnv *jni, jthread t) {
    if (!strcmp(mode, "slow")) usleep(300000);
    if (!strcmp(mode, "vminit") && !ask()) (*jni)->FatalError(jni, "other agent: allocation sampling is not available");
    if (!strcmp(mode, "later")) {
        jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
        jobject o = (*jni)->NewObject(jni, k, (*jni)->GetMethodID(jni, k, "<init>", "()V"));
        (*ti)->RunAgentThread(ti, o, later, NULL, JVMTI_THREAD_NORM_PRIORITY);
    }
}
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    jvmtiEventCallbacks cb;
    memset(&cb, 0, sizeof cb);
    snprintf(mode, sizeof mode, "%s", options ? options : "");
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_11)) return JNI_ERR;
    cb.SampledObjectAlloc = on_sample;
    cb.VMDeath = on_death;
    cb.VMInit = on_init;
    (*ti)->SetEventCallbacks(ti, &cb, sizeof cb);
    if (!strcmp(mode, "onload") && !ask()) return JNI_ERR;
    if (!strcmp(mode, "tolerant")) ask();
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    return 0;
}
`

func demanding(t *testing.T, major int) string {
	inc := filepath.Join(jdk(t, major), "include")
	return compiled(t, "libdemanding.so", demandingAgent, "-I"+inc, "-I"+filepath.Join(inc, "linux"))
}

var recordedIn = regexp.MustCompile(`(?m)^heapcam: recorded Collect .*: (\S+)$`)

// TestDemandingAgent starts JVMs whose own agent wants allocation sampling, wherever that agent stands and whenever
// it asks: the JVM starts, the agent has its samples, and heapcam records without sites and says so.
func TestDemandingAgent(t *testing.T) {
	tiers.Gate(t, "another agent that wants the sampling")
	t.Parallel()
	places := []string{"command line", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS before", "JAVA_TOOL_OPTIONS behind"}
	for i, mode := range []string{"onload", "vminit", "tolerant"} {
		for j, place := range places {
			for _, major := range []int{17, 25} {
				if !full && (i+j)%2 == 0 != (major == 17) { // in the short rounds each case on one JDK
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", mode, place, major), func(t *testing.T) {
					t.Parallel()
					java, option := filepath.Join(jdk(t, major), "bin", "java"),
						"-agentpath:"+demanding(t, major)+"="+mode
					dir := t.TempDir()
					args := []string{"run", "--out", dir, "--overhead-cpu", "0", "--", java, "-Xmx64m", "-Xcheck:jni",
						"-cp", classPath(t), "Collect", "10"}
					env := os.Environ()
					switch place {
					case "command line":
						args = append(args[:7], append([]string{option}, args[7:]...)...)
					case "JDK_JAVA_OPTIONS":
						env = append(env, "JDK_JAVA_OPTIONS="+option)
					case "JAVA_TOOL_OPTIONS before":
						env = append(env, "JAVA_TOOL_OPTIONS="+option)
					case "JAVA_TOOL_OPTIONS behind":
						line := `JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS ` + option + `" exec "$@"`
						args = append(args[:6], append([]string{"sh", "-c", line, "sh"}, args[6:]...)...)
					}
					c := exec.Command(tool, args...)
					c.Env = env
					b, err := c.CombinedOutput()
					out := string(b)
					if err != nil || !strings.Contains(out, "\ndone\n") ||
						!strings.Contains(out, "other agent: sampled") {
						t.Fatalf("the application does not run as it does without heapcam: %v\n%s", err, out)
					}
					if strings.Count(out, "heapcam: ") != 2 ||
						!strings.Contains(out, "another agent holds allocation sampling") {
						t.Errorf("heapcam must say in one line that there are no sites:\n%s", out)
					}
					if strings.Contains(out, "WARNING") || strings.Contains(out, "FATAL") {
						t.Errorf("-Xcheck:jni is not silent:\n%s", out)
					}
					m := recordedIn.FindStringSubmatch(out)
					if m == nil {
						t.Fatalf("it is not recorded:\n%s", out)
					}
					verify(t, m[1], 1)
					if text, _, _ := heapcam(t, "dump", m[1]); !strings.Contains(text, "no_sampling") {
						t.Error("the recording does not say that there was no allocation sampling")
					}
				})
			}
		}
	}
}

// TestSamplingBegins: without another agent allocation sampling begins at once, and else when the other agents'
// VMInit is over; how late is recorded.
func TestSamplingBegins(t *testing.T) {
	t.Parallel()
	somePair(t, "begins", []int{17, 25}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		t.Parallel()
		for _, opts := range [][]string{nil, {"-agentpath:" + demanding(t, major) + "=slow"}} {
			p := program{major: major, gc: gc, opts: opts, main: "Collect", args: []string{"3"},
				flags: []string{"--sampling", "64k"}}
			r := p.start(t)
			r.finish(t)
			if l := r.probeLines(); len(l) != 0 {
				t.Errorf("the probe says %q", l)
			}
			text, _, _ := heapcam(t, "dump", checkCount(t, r).dir)
			m := regexp.MustCompile(`allocation sampling: begins (\d+) ms after`).FindStringSubmatch(text)
			if (m != nil) != (opts != nil) || m != nil && len(m[1]) < 3 {
				t.Errorf("with %q the recording says %q of a late begin", opts, m)
			}
			if !regexp.MustCompile(`(?m)^\s*sample `).MatchString(text) || strings.Contains(text, "no_sampling") {
				t.Error("nothing is sampled")
			}
		}
	})
}

// TestSamplingHandedOver has an agent ask for allocation sampling while heapcam uses it. Pausing the recording releases
// it. Afterwards the recording continues without sites, which status and the recording report.
func TestSamplingHandedOver(t *testing.T) {
	t.Parallel()
	somePair(t, "handed over", []int{17, 25}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		t.Parallel()
		d := newDaemon(t)
		d.start(t)
		demand, end := filepath.Join(t.TempDir(), "demand"), filepath.Join(t.TempDir(), "end")
		opts := []string{"-Xcheck:jni", "-agentpath:" + demanding(t, major) + "=later"}
		p := program{major: major, gc: gc, heap: "64m", opts: opts, main: "Until", args: []string{end, "2000", "20"}}
		r := p.plain(t, "env", "DEMAND="+demand)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		look := func() (s session.Status) {
			for _, s = range d.status(t).JVMs {
			}
			return s
		}
		verb := func(v string) {
			t.Helper()
			if _, errs, code := heapcam(t, v, r.pidText(), "--socket", d.sock); code != 0 {
				t.Fatalf("%s: status %d: %s", v, code, errs)
			}
		}
		await(t, "samples", func() bool { return look().Samples > 0 })
		verb("pause")
		verb("resume") // nobody asked: it is had again
		n := look().Samples
		await(t, "samples", func() bool { return look().Samples > n })
		if err := os.WriteFile(demand, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		await(t, "the refusal", func() bool { return strings.Contains(r.stderr.String(), "other agent: refused") })
		verb("pause")
		await(t, "the other agent", func() bool { return strings.Contains(r.stderr.String(), "other agent: has it") })
		verb("resume")
		await(t, "status", func() bool { return look().NoSites })
		gc0 := look().LastGC
		await(t, "collections", func() bool { return look().LastGC > gc0+1 })
		s := look()
		r.end(t, end)
		d.stop(t)
		stderr := r.stderr.String()
		if !strings.Contains(stderr, "other agent: sampled") ||
			strings.Count(stderr, "another agent holds allocation sampling") != 1 {
			t.Errorf("stderr: %s", stderr)
		}
		verify(t, s.Dir, 1)
		text, _, _ := heapcam(t, "dump", s.Dir)
		if !strings.Contains(text, "no_sampling") || !strings.Contains(text, "no allocation sites from now on") {
			t.Error("the recording does not say from when on there are no sites")
		}
	})
}
