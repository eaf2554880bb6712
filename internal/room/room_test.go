package room

import (
	"errors"
	"os"
	"testing"
)

// TestRoom: arrays are of zeros, do not overlap, and what does not fit is made in memory.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	r, err := New(dir, 1<<20)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("not run: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	a, b, big := Make[uint32](r, 100_000), Make[uint64](r, 60_000), Make[uint32](r, 1<<20)
	if r.Used() > 1<<20 || r.Used() < 880_000 {
		t.Errorf("%d bytes used", r.Used())
	}
	for i := range a {
		a[i] += uint32(i)
	}
	for i := range b {
		b[i] += 1 << 40
	}
	big[len(big)-1]++
	for i := range a {
		if a[i] != uint32(i) {
			t.Fatalf("%d: %d", i, a[i])
		}
	}
	if TryMake[byte](r, 1<<62) != nil || TryMake[uint64](r, 1<<40) != nil || TryMake[byte](r, 10) != nil ||
		TryMake[byte](nil, 1<<20) != nil || TryMake[byte](r, 1<<18) != nil {
		t.Error("arrays that do not fit")
	}
	Free(r, a)
	Free(r, a)
	Free(r, big)
	if b[59_999] != 1<<40 || len(Make[byte](nil, 7)) != 7 {
		t.Error(b[59_999])
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if Make[byte](r, 1<<17) == nil {
		t.Error("no array after Close")
	}
	if _, err := New(dir, 1<<60); err == nil {
		t.Error("a room larger than the disk")
	}
	if _, err := New(dir+"/none", 1); err == nil {
		t.Error("a room in no folder")
	}
}

// TestLeft: the smallest limit counts, and pages of files that can be dropped are left.
func TestLeft(t *testing.T) {
	files := map[string]string{}
	read := func(path string) string { return files[path] }
	const meminfo = "MemTotal: 9000 kB\nMemAvailable:    2048 kB\n"
	check := func(cgroup, meminfo string, want int64) {
		t.Helper()
		if got := leftIn(cgroup, meminfo, read); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	check("", "", -1)
	check("0::/a/b\n", meminfo, 2<<20)
	files["/a/memory.max"], files["/a/memory.current"] = "1000000\n", "900000\n"
	files["/a/b/memory.max"], files["/a/b/memory.current"] = "max\n", "1\n"
	check("0::/a/b\n", meminfo, 100_000)
	files["/a/memory.stat"] = "anon 5\ninactive_file 50000\n"
	check("0::/a/b\n", meminfo, 150_000)
	files["/a/memory.current"] = "2000000"
	check("0::/a/b\n", meminfo, 0)
	files["memory/x/memory.limit_in_bytes"], files["memory/x/memory.usage_in_bytes"] = "500", "100"
	files["memory/memory.limit_in_bytes"], files["memory/memory.usage_in_bytes"] = "9223372036854771712", "100"
	check("9:name=systemd:/\n4:cpu,memory:/x\n0::/\n", meminfo, 400)
	if n := Left(); n == 0 || n < -1 {
		t.Errorf("%d bytes are left", n)
	}
}
