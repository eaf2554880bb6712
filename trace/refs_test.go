package trace

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var genWord = rapid.Uint64Range(0, MaxRefWord)

func genRefs(t *rapid.T) *RefPart {
	p := &RefPart{Listing: rapid.Uint64Range(1, MaxCount).Draw(t, "listing"),
		N: rapid.Uint64Range(1, 3).Draw(t, "n"), Flags: rapid.SampledFrom([]uint64{0, RefLast}).Draw(t, "flags")}
	if p.N == 1 {
		p.Flags |= RefFirst
		if p.HasAbout = rapid.Bool().Draw(t, "about"); p.HasAbout {
			p.About = References{rapid.Uint64Range(0, maxFlags).Draw(t, "ticket"), genNum.Draw(t, "gc"),
				genTime.Draw(t, "time"), genTime.Draw(t, "dur"), genTime.Draw(t, "probe"), genNum.Draw(t, "objects"),
				genNum.Draw(t, "slots"), genNum.Draw(t, "roots"), genStr.Draw(t, "missing"), genStr.Draw(t, "refused")}
		}
	}
	field := rapid.Uint64Range(0, MaxRefFields)
	p.Classes = list(t, "classes", func() RefClass {
		return RefClass{genType.Draw(t, "id"), rapid.Uint64Range(0, MaxTypeID).Draw(t, "type"),
			rapid.Uint64Range(0, 7).Draw(t, "kind"), field.Draw(t, "slots"), field.Draw(t, "statics"),
			genStr.Draw(t, "name")}
	})
	p.Fields = list(t, "fields", func() RefField {
		return RefField{genType.Draw(t, "class"), field.Draw(t, "slot"), genFlag.Draw(t, "flags"),
			rapid.Uint64Range(0, 4).Draw(t, "strength"), rapid.Uint64Range(0, MaxTypeID).Draw(t, "declared"),
			genStr.Draw(t, "name"), genStr.Draw(t, "sig")}
	})
	p.Extra = list(t, "extra", func() RefExtra {
		return RefExtra{genWord.Draw(t, "from"), genWord.Draw(t, "to"), rapid.Uint64Range(1, 255).Draw(t, "kind")}
	})
	p.Roots = list(t, "roots", func() RefRoot {
		return RefRoot{genWord.Draw(t, "target"), rapid.Uint64Range(0, 255).Draw(t, "kind"), genZID.Draw(t, "thread"),
			genZID.Draw(t, "method"), rapid.Uint64Range(0, MaxBCI).Draw(t, "bci"), genNum.Draw(t, "depth")}
	})
	p.Samples = list(t, "samples", func() RefSample {
		return RefSample{rapid.Uint64Range(0, MaxSampleID).Draw(t, "id"), genWord.Draw(t, "word")}
	})
	p.Lists = genBlobs(t, "lists")
	p.Slots = list(t, "slots", func() []byte { return make([]byte, 4*rapid.IntRange(0, 5).Draw(t, "n")) })
	return p
}

// TestRefsRoundTrip: what is encoded is decoded equal, and a part that does not begin with its refpart is refused.
func TestRefsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRefs(t)
		b := EncodeRefs(want)
		got, err := DecodeRefs(b)
		version := uint8(RefsFormatVersion)
		if len(want.Samples) > 0 {
			version = RefSamplesVersion
		}
		if err != nil || b.Version != version {
			t.Fatalf("version %d: %v", b.Version, err)
		}
		blobs := len(want.Lists)+len(want.Slots) > 0 // compared by content: an empty one may be nil
		if !reflect.DeepEqual(got, want) && !(blobs && EncodeRefs(got).Equal(b)) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		b.Payload = append(append([]byte{}, b.Payload...), b.Payload...)
		if _, err := DecodeRefs(b); err == nil {
			t.Fatal("two refparts in a block are taken")
		}
	})
}

func TestRefsRefused(t *testing.T) {
	for why, p := range map[string]*RefPart{
		"first, and part 2":     {Listing: 1, N: 2, Flags: RefFirst},
		"part 1, and not first": {Listing: 1, N: 1},
		"half a slot":           {Listing: 1, N: 2, Slots: [][]byte{{1, 2, 3}}},
		"no listing":            {N: 2},
	} {
		if _, err := DecodeRefs(EncodeRefs(p)); err == nil {
			t.Errorf("%s: taken", why)
		}
	}
	old := EncodeRefs(&RefPart{Listing: 1, N: 2})
	old.Version = 3
	if _, err := DecodeRefs(old); err == nil {
		t.Error("an event of version 4 in a block of version 3 is taken")
	}
}
