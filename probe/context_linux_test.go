package probe

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace"
)

// TestContextMessage: of a message that OpenTelemetry's own library encodes, otelmessage.c finds the named attributes
// and no others; changed ones are read within their bounds (AddressSanitizer).
func TestContextMessage(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: messages of process contexts (there is no gcc)")
	}
	bin := filepath.Join(t.TempDir(), "context")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror", "-Isrc", "testdata/context.c", "src/otelmessage.c",
		"-o", bin).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	run := func(in []byte, args ...string) string {
		t.Helper()
		c := exec.Command(bin, args...)
		var said bytes.Buffer
		c.Stdin, c.Stderr = bytes.NewReader(in), &said
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said.Bytes())
		}
		return string(out)
	}
	keys := strings.Fields(run(nil, "keys"))
	want := slices.DeleteFunc(append([]string{trace.OldEnv}, trace.ResourceKeys...),
		func(k string) bool { return k == trace.AttrRedact })
	if !maps.Equal(set(keys), set(want)) || len(keys) != len(want) {
		t.Errorf("otel_keys: %q, want %q", keys, want)
	}
	long := strings.Repeat("x", 600)
	m := message(t, func(a pcommon.Map) {
		a.PutStr("password", "s3cret")
		a.PutStr("service.name", "orders")
		a.PutInt("process.pid", 7)
		a.PutStr("service.version", long)
		a.PutStr("service.names", "s3cret")
		a.PutEmptySlice("host.name").AppendEmpty().SetStr("s3cret")
		a.PutStr("k8s.pod.name", "")
		a.PutStr("systemd.unit", "a=b c")
		a.PutEmptyMap("container.id").PutStr("service.namespace", "s3cret")
	})
	resource := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), m)
	extra := protowire.AppendBytes(protowire.AppendTag(slices.Clone(resource), 2, protowire.BytesType),
		m) // extra_attributes
	found := "service.name=orders\nservice.version=" + long[:512] + "\nsystemd.unit=a=b c\n"
	for name, in := range map[string][]byte{"Resource": m, "ProcessContext": resource, "extra": extra} {
		if got := run(in, "read"); got != found {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := run([]byte{}, "read"); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	n := "300000"
	if tiers.Short() {
		n = "30000"
	}
	for _, in := range [][]byte{m, extra, bytes.Repeat(resource, 20)} {
		run(in[:min(len(in), 16<<10)], "mutate", n)
	}
}

func set(all []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		out[s] = true
	}
	return out
}

// message gives a Resource as the library encodes it, which is field 1 of field 1 of traces.
func message(t *testing.T, fill func(pcommon.Map)) []byte {
	t.Helper()
	traces := ptrace.NewTraces()
	fill(traces.ResourceSpans().AppendEmpty().Resource().Attributes())
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 || num != 1 || kind != protowire.BytesType {
			t.Fatalf("field %d of type %d", num, kind)
		}
		if b, n = protowire.ConsumeBytes(b[n:]); n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
	}
	return b
}
