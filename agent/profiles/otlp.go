package profiles

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"
)

// otlpPath is the path of OTLP over HTTP for profiles, whose format OpenTelemetry still calls under development.
const otlpPath = "/v1development/profiles"

// otlpNames are the attributes of a resource for labels.
var otlpNames = map[string]string{"service_name": "service.name", "service_version": "service.version",
	"service_namespace": "service.namespace", "host": "host.name", "instance": "service.instance.id"}

// otlpRequest gives a profile as an ExportProfilesServiceRequest, gzipped: ProfilesData has the same fields by the same
// numbers. OTLP has one value in a profile, so each value of e becomes a profile, and all share stacks.
func otlpRequest(e *encoded) ([]byte, error) {
	from, err := profile.ParseData(e.body)
	if err != nil {
		return nil, err
	}
	out := pprofile.NewProfiles()
	of := out.ResourceProfiles().AppendEmpty()
	for label, v := range e.labels {
		if name := otlpNames[label]; name != "" {
			of.Resource().Attributes().PutStr(name, v)
		}
	}
	scope := of.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("heapcam")
	d := newDictionary(out.Dictionary())
	stacks := make([]int32, len(from.Sample))
	for i, s := range from.Sample {
		stacks[i] = d.stack(s.Location)
	}
	id, err := hex.DecodeString(strings.ReplaceAll(e.id, "-", ""))
	if err != nil || len(id) != 16 {
		return nil, fmt.Errorf("profile %q has no UUID", e.id)
	}
	last := id[15]
	for v, kind := range from.SampleType {
		p := scope.Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(d.text(kind.Type))
		p.SampleType().SetUnitStrindex(d.text(kind.Unit))
		p.PeriodType().SetTypeStrindex(d.text(from.PeriodType.Type))
		p.PeriodType().SetUnitStrindex(d.text(from.PeriodType.Unit))
		p.SetPeriod(from.Period)
		p.SetTime(pcommon.Timestamp(from.TimeNanos))
		p.SetDurationNano(uint64(from.DurationNanos))
		id[15] = last + byte(v) // another one for each value, and the same whenever it is sent
		p.SetProfileID(pprofile.ProfileID(id))
		for i, s := range from.Sample {
			if s.Value[v] == 0 {
				continue
			}
			x := p.Samples().AppendEmpty()
			x.SetStackIndex(stacks[i])
			x.Values().Append(s.Value[v])
		}
	}
	var m pprofile.ProtoMarshaler
	b, err := m.MarshalProfiles(out)
	if err != nil {
		return nil, err
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(b)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return z.Bytes(), err
}

// dictionary fills the tables that profiles of a request share. The first entry of each is empty, as OTLP demands.
type dictionary struct {
	pprofile.ProfilesDictionary
	texts     map[string]int32
	functions map[*profile.Function]int32
	locations map[*profile.Location]int32
	jvm       int32 // attribute of all frames
}

func newDictionary(t pprofile.ProfilesDictionary) *dictionary {
	d := &dictionary{t, map[string]int32{}, map[*profile.Function]int32{}, map[*profile.Location]int32{}, 0}
	d.text("")
	t.MappingTable().AppendEmpty()
	t.LocationTable().AppendEmpty()
	t.FunctionTable().AppendEmpty()
	t.LinkTable().AppendEmpty()
	t.StackTable().AppendEmpty()
	t.AttributeTable().AppendEmpty()
	d.jvm = int32(t.AttributeTable().Len())
	a := t.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(d.text("profile.frame.type"))
	a.Value().SetStr("jvm")
	return d
}

func (d *dictionary) text(s string) int32 {
	i, ok := d.texts[s]
	if !ok {
		i = int32(d.StringTable().Len())
		d.StringTable().Append(s)
		d.texts[s] = i
	}
	return i
}

func (d *dictionary) function(f *profile.Function) int32 {
	i, ok := d.functions[f]
	if !ok {
		i = int32(d.FunctionTable().Len())
		x := d.FunctionTable().AppendEmpty()
		x.SetNameStrindex(d.text(f.Name))
		x.SetFilenameStrindex(d.text(f.Filename))
		d.functions[f] = i
	}
	return i
}

func (d *dictionary) location(l *profile.Location) int32 {
	i, ok := d.locations[l]
	if !ok {
		i = int32(d.LocationTable().Len())
		x := d.LocationTable().AppendEmpty()
		x.AttributeIndices().Append(d.jvm)
		for _, line := range l.Line {
			y := x.Lines().AppendEmpty()
			y.SetFunctionIndex(d.function(line.Function))
			y.SetLine(line.Line)
		}
		d.locations[l] = i
	}
	return i
}

// stack adds a stack, innermost frame first. Samples of a profile have different ones.
func (d *dictionary) stack(frames []*profile.Location) int32 {
	i := int32(d.StackTable().Len())
	x := d.StackTable().AppendEmpty()
	for _, l := range frames {
		x.LocationIndices().Append(d.location(l))
	}
	return i
}

// otlpRefused reads what a server answers to a request that it took: whether it rejected some of it, and why.
// ExportProfilesServiceResponse has partial_success as 1, which has rejected_profiles as 1 and error_message as 2.
func otlpRefused(answer []byte) error {
	rejected, why := uint64(0), ""
	fields(answer, func(n protowire.Number, _ uint64, b []byte) {
		if n == 1 {
			fields(b, func(n protowire.Number, v uint64, b []byte) {
				switch n {
				case 1:
					rejected = v
				case 2:
					why = string(b)
				}
			})
		}
	})
	if rejected == 0 {
		return nil
	}
	return &refusedError{said(fmt.Sprintf("that it rejected %d profiles", rejected), []byte(why))}
}

// fields calls f with each field of a message, until one that is damaged.
func fields(b []byte, f func(n protowire.Number, v uint64, b []byte)) {
	for len(b) > 0 {
		n, kind, l := protowire.ConsumeTag(b)
		if l < 0 {
			return
		}
		b = b[l:]
		switch kind {
		case protowire.VarintType:
			v, l := protowire.ConsumeVarint(b)
			if l < 0 {
				return
			}
			f(n, v, nil)
			b = b[l:]
		case protowire.BytesType:
			v, l := protowire.ConsumeBytes(b)
			if l < 0 {
				return
			}
			f(n, 0, v)
			b = b[l:]
		default:
			l := protowire.ConsumeFieldValue(n, kind, b)
			if l < 0 {
				return
			}
			b = b[l:]
		}
	}
}
