package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write the generated page anew")

// TestReference fails when docs/reference/metrics.md is stale.
func TestReference(t *testing.T) {
	const path = "../../docs/reference/metrics.md"
	want := reference()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go generate ./agent/metrics", path, err)
	}
}

const head = `<!-- Generated: go generate ./agent/metrics. Do not edit. -->
# Metrics

An agent with the setting ` + "`metrics`" + ` serves these metrics at ` + "`/metrics`" + `.
The packages set it to ` + "`127.0.0.1:9464`" + `. ` + "`/healthz`" + ` answers 200 while the agent works, else
503 with the reason. [Alerts](alerts.md) explains the alerts that use these metrics,
[monitoring](../how-to/monitoring.md) how to scrape them.

There are also the metrics of Go's client library: ` + "`process_…`" + ` (CPU time and memory of the agent), and
` + "`go_…`" + `. Where a cell says "report it", [report a defect](../../CONTRIBUTING.md#report-a-defect).
`

func reference() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	table := func(title, text string, all []metric) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n",
			title, text)
		for _, m := range all {
			kind := "gauge"
			if m.kind == prometheus.CounterValue {
				kind = "counter"
			} else if m.kind == histogram {
				kind = "native histogram"
			}
			var labels []string
			for _, l := range m.labels {
				if l != "recording" && l != "jvm" {
					labels = append(labels, "`"+l+"`")
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, kind, unit(m.name), strings.Join(labels, ", "),
				strings.TrimSpace(marked(m.help)+" "+m.more))
		}
	}
	var ofRecording, ofAgent []metric
	for _, f := range fields {
		ofRecording = append(ofRecording, f.metric)
	}
	for _, m := range others {
		if len(m.labels) > 1 {
			ofRecording = append(ofRecording, m)
		} else {
			ofAgent = append(ofAgent, m)
		}
	}
	table("One recording", "Each of these has the labels `recording` (the id of the recording) and `jvm` (main class "+
		"or jar), and those of its row.", ofRecording)
	table("The agent", "Each of these is about all recordings of the agent, or about the agent itself.", ofAgent)
	return b.Bytes()
}

// keyName is the name of a setting in a text.
var keyName = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`)

// marked sets the names of settings in text as code.
func marked(text string) string { return keyName.ReplaceAllString(text, "`$0`") }

// unit gives the unit that the name of a metric ends in.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, u := range []string{"bytes", "seconds", "ratio"} {
		if strings.HasSuffix(name, "_"+u) {
			return u
		}
	}
	return ""
}
