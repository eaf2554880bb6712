package trace_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestResource: attributes survive the bytes, in a block that older programs call too new and no other one becomes.
func TestResource(t *testing.T) {
	r := trace.Resource{trace.AttrService: "orders", trace.AttrNamespace: "shop", trace.AttrVersion: "1.4.2",
		trace.AttrPod: "orders-7d4-x2kfq", trace.AttrK8sName: "web"}
	b := trace.EncodeMeta(trace.Meta{Resource: r})
	if m := decodeMeta(t, b); !maps.Equal(m.Resource, r) || b.Version != trace.ResourceVersion {
		t.Errorf("read %v of version %d", m.Resource, b.Version)
	}
	if got := r.String(); got != "shop/orders 1.4.2 (orders-7d4-x2kfq, web)" {
		t.Error(got)
	}
	if v := trace.EncodeMeta(trace.Meta{Sampling: []trace.Sampling{{}}}).Version; v != 2 {
		t.Errorf("a block without has version %d", v)
	}
	b.Version = 4
	if _, err := trace.DecodeMeta(b); err == nil {
		t.Error("an event newer than its block was read")
	}
}

// TestHostileResource: whatever a block or a process says, what is kept is bounded and printable.
func TestHostileResource(t *testing.T) {
	bad := trace.Resource{"Service Name": "x", "\x1b[2J": "y", trace.AttrService: "a\x1b]0;owned\x07\nb\u202e",
		trace.AttrHost: strings.Repeat("é", 5000), "secret": "s3cret"}
	for i := range 200 {
		bad["k."+strings.Repeat("x", i%40)+string(rune('a'+i%26))] = strings.Repeat("v", 100)
	}
	b := trace.EncodeMeta(trace.Meta{Resource: bad})
	for _, r := range []trace.Resource{decodeMeta(t, b).Resource, bad.Clean()} {
		size := 0
		for k, v := range r {
			size += len(k) + len(v)
			if v != trace.CleanAttr(v) || len(v) > trace.MaxAttr || strings.ContainsAny(k+v, "\x1b\n\u202e ") {
				t.Errorf("kept %q=%q", k, v)
			}
		}
		if size > trace.MaxResource || size == 0 {
			t.Errorf("%d bytes kept", size)
		}
	}
	if c := bad.Clean(); c["secret"] != "" || c[trace.AttrService] != "a_]0;owned__b_" || len(c) != 2 {
		t.Errorf("%v", c)
	}
}
