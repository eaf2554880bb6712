package quota

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// readCPUTimes reads the sums and the number of CPUs of /proc/stat.
func readCPUTimes() (t cpuTimes, ok bool) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return t, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16)) // what counts comes first
	if err != nil {
		return t, false
	}
	return parseCPUTimes(b)
}

// parseCPUTimes takes the fields of the line of all CPUs: user, nice, system, idle, iowait, irq, softirq and steal.
// What follows is in user and nice already.
func parseCPUTimes(stat []byte) (t cpuTimes, ok bool) {
	for line := range bytes.Lines(stat) {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		switch {
		case !bytes.HasPrefix(name, []byte("cpu")):
			return t, t.cpus > 0 && t.all > 0
		case len(name) > len("cpu"):
			t.cpus++
			continue
		}
		for i, f := range bytes.Fields(rest) {
			n, err := strconv.ParseUint(string(f), 10, 64)
			if err != nil || i > 7 {
				break
			}
			if t.all += n; i == 3 || i == 4 {
				t.idle += n
			}
		}
	}
	return t, t.cpus > 0 && t.all > 0
}
