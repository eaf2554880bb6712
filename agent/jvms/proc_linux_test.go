package jvms

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// claimed is how much of its memory the process below says to be its command line and its environment.
const claimed = 256 << 20

// TestClaim is the process that TestHugeCommandLine starts.
func TestClaim(t *testing.T) {
	if os.Getenv("JVMS_TEST_CLAIM") == "" {
		t.Skip("a part of TestHugeCommandLine")
	}
	b, err := unix.Mmap(-1, 0, 2*claimed, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err == nil {
		err = claim(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
	}
	fmt.Println(err)
	time.Sleep(time.Minute)
}

// claim says that the command line is at at, and the environment behind it. Everybody may (PR_SET_MM_MAP).
func claim(at uint64) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	field := func(n int) uint64 { v, _ := strconv.ParseUint(f[n-3], 10, 64); return v }
	brk, _, _ := unix.Syscall(unix.SYS_BRK, 0, 0, 0)
	m := struct {
		startCode, endCode, startData, endData, startBrk, brk, startStack, argStart, argEnd, envStart, envEnd uint64
		auxv                                                                                                  uint64
		auxvSize                                                                                              uint32
		exe                                                                                                   int32
	}{field(26), field(27), field(45), field(46), field(47), uint64(brk), field(28), at,
		at + claimed, at + claimed, at + 2*claimed - 1, 0, 0, -1}
	return unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_MAP, uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), 0)
}

// TestHugeCommandLine: a process that says that gigabytes are its command line makes nobody read them.
func TestHugeCommandLine(t *testing.T) {
	c := exec.Command("/proc/self/exe", "-test.run=^TestClaim$")
	c.Env = append(os.Environ(), "JVMS_TEST_CLAIM=1")
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		t.Fatal(err)
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "<nil>" {
		t.Skip("not run: the kernel does not allow PR_SET_MM:", said.Text())
	}
	f, err := os.Open("/proc/" + strconv.Itoa(c.Process.Pid) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.ReadAt(make([]byte, 10), claimed/2); n != 10 {
		t.Fatalf("the process does not say so: %d, %v", n, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, name := range []string{"cmdline", "environ"} {
		if b, err := ReadProc(c.Process.Pid, name); err != nil || len(b) != procfs.MaxText {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	Inspect(c.Process.Pid)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}
