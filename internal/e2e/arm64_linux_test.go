package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestArm64: the probe for arm64 records JVMs of arm64 below qemu-user, and what it records is right: at each sync
// point the replayed heap equals the listed one. HEAPCAM_ARM64_ROOT names a root that tools/arm64-root made.
// HEAPCAM_PAGE is the page size to imitate; with one only Serial and G1 run. The recorder is this machine's own: it
// takes the rings from a spool folder. qemu-user has no process_vm_readv, so this tests the copy through a pipe, too.
// Time and memory order are those of the host.
func TestArm64(t *testing.T) {
	root := os.Getenv("HEAPCAM_ARM64_ROOT")
	lib, err := filepath.Abs("../../probe/lib/libheapcam-linux-arm64.so")
	if err != nil {
		t.Fatal(err)
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if _, missing := os.Stat(lib); root == "" || err != nil || missing != nil {
		t.Skip("not run: JVMs of arm64 below qemu (make test-arm64)")
	}
	emulate := []string{qemu, "-L", root}
	if page := os.Getenv("HEAPCAM_PAGE"); page != "" {
		emulate = append(emulate, "-p", page)
	}
	javas, _ := filepath.Glob(root + "/usr/lib/jvm/java-[0-9][0-9]-openjdk-arm64/bin/java")
	if len(javas) == 0 {
		t.Fatalf("%s holds no JDK", root)
	}
	for _, java := range javas {
		for _, gc := range collectors {
			if os.Getenv("HEAPCAM_PAGE") != "" && gc == "Parallel" {
				continue
			}
			for _, depth := range []string{"survivors", "full"} {
				name := strings.TrimSuffix(strings.TrimPrefix(java, root+"/usr/lib/jvm/"), "-openjdk-arm64/bin/java")
				t.Run(fmt.Sprintf("%s/%s/%s", name, gc, depth), func(t *testing.T) {
					onArm64(t, append(emulate, java), "-XX:+Use"+gc+"GC", lib, depth)
				})
			}
		}
	}
}

func onArm64(t *testing.T, java []string, gc, lib, depth string) {
	spool := filepath.Join(t.TempDir(), "spool")
	if err := os.Mkdir(spool, 0o700); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "--max-trace-size", "2MiB", "--spool", spool)
	d.start(t)
	option := fmt.Sprintf("-agentpath:%s=spool:%s,allow_untested=1,interval=16384,depth=%s", lib, spool, depth)
	line := append(java, gc, "-Xmx48m", "-Xmn6m", option, "-cp", classPath(t), "Mixed", "300000", "8")
	var said buffer
	c := exec.Command(line[0], line[1:]...)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	refused := func() bool { return strings.Contains(said.String(), "heapcam: not recording this JVM") }
	// Each file begins with a listing: by the third, two states have been known when they were listed. The ring may
	// have evicted that file again when a busy machine comes to look.
	third := func() string {
		found, _ := filepath.Glob(filepath.Join(d.out, "*", "*.hcr"))
		for _, f := range found {
			if filepath.Base(f) >= "00000003.hcr" {
				return filepath.Dir(f)
			}
		}
		return ""
	}
	for end := time.Now().Add(15 * time.Minute); time.Now().Before(end) && third() == "" && !refused(); {
		time.Sleep(200 * time.Millisecond)
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait() // 143
	// With pages much larger than the host's, qemu answers EFAULT for memory that can be read and written: to the C
	// library's getrandom, and to the probe, which then says that it cannot read a table. Where the libraries lie
	// decides whether it happens.
	if refused() && os.Getenv("HEAPCAM_PAGE") == "65536" && strings.Contains(said.String(), "cannot be read") {
		t.Skip("not run: a JVM of arm64 with pages of 64 KiB (qemu does not let its memory be read)")
	}
	if refused() {
		t.Fatal(said.String())
	}
	await(t, "the recording ends", func() bool {
		jvms := d.status(t).JVMs
		return len(jvms) == 1 && jvms[0].Phase == "ended"
	})
	dir := third()
	if dir == "" {
		t.Fatalf("too little was recorded\n%s", said.String())
	}
	v, text := verifyText(t, dir)
	all := v.Files[0]
	if all.Compared == 0 || v.Mismatches != 0 {
		t.Errorf("%d sync points compared, %d mismatches\n%s", all.Compared, v.Mismatches, text)
	}
	t.Logf("%d collections, %d sync points, %d compared, %d objects, %d mismatches", all.Collections, all.SyncPoints,
		all.Compared, all.Objects, v.Mismatches)
}
