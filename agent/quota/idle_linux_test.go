package quota

import "testing"

func TestParseCPUTimes(t *testing.T) {
	const stat = "cpu  10 1 20 300 5 2 3 4 10 1\n" +
		"cpu0 5 0 10 150 2 1 1 2 5 0\ncpu1 5 1 10 150 3 1 2 2 5 1\n" +
		"intr 123 0\n"
	if got, ok := parseCPUTimes([]byte(stat)); !ok || got != (cpuTimes{idle: 305, all: 345, cpus: 2}) {
		t.Errorf("%+v %v", got, ok)
	}
	for _, s := range []string{"", "cpu", "cpu \n", "intr 1\n", "cpu0 1 2\n", "cpu x y\ncpu0 1\n", "cpu 1 2 3 4\n"} {
		if got, ok := parseCPUTimes([]byte(s)); ok {
			t.Errorf("%q is understood: %+v", s, got)
		}
	}
	if got, ok := readCPUTimes(); !ok || got.cpus < 1 || got.all < got.idle {
		t.Errorf("the host: %+v %v", got, ok)
	}
}
