package monitoring

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

//go:generate go test . -run TestReference -update

var update = flag.Bool("update", false, "write the generated page anew")

// TestReference fails when docs/reference/alerts.md is stale, and when an alert does not say what it means or what to
// do.
func TestReference(t *testing.T) {
	const path = "../../docs/reference/alerts.md"
	want := reference(t)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go generate ./internal/monitoring", path, err)
	}
}

const head = `<!-- Generated from the rules of Prometheus: go generate ./internal/monitoring. Do not edit. -->
# Alerts

These are the alerts of ` + "`packaging/prometheus/heapcam.rules.yml`" + `. The job of the agents must have the name
` + "`heapcam`, as in `packaging/prometheus/scrape.yml`" + `. [Metrics](metrics.md) explains the metrics.

Most of these alerts are about recording: while they fire, the JVMs run on. Two report something about a JVM:
HeapcamIncident (it was killed, crashed or ran out of memory) and HeapcamEmergencyUnanswered (it does not answer). None
has the severity critical. Where an alert says "report it", [report a defect](../../CONTRIBUTING.md#report-a-defect).
`

func reference(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(head)
	for _, a := range alerts(t) {
		meaning, action := a.Annotations["description"], a.Annotations["action"]
		if meaning == "" || action == "" {
			t.Errorf("%s has no description or no action", a.Alert)
		}
		when := "It fires when this is true:"
		if a.For != "" {
			when = "It fires when this has been true for " + minutes(a.For) + ":"
		}
		expr := a.Expr
		if len(expr) > 115 {
			expr = strings.ReplaceAll(expr, " / ", "\n  / ")
			expr = strings.NewReplacer(" unless ", "\n  unless ", " and on ", "\n  and on ").Replace(expr)
		}
		fmt.Fprintf(&b, "\n## `%s`\n\nSeverity: %s. %s\n\n```text\n%s\n```\n\n%s\n\n%s\n", a.Alert,
			a.Labels["severity"], when, expr, folded("**Meaning.** "+meaning), folded("**What to do.** "+action))
	}
	return b.Bytes()
}

// minutes writes a duration of the rules, such as 5m, in words.
func minutes(d string) string {
	n := strings.TrimSuffix(d, "m")
	return n + " minutes"
}

// folded breaks a paragraph into lines of at most 115 columns.
func folded(para string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(para) {
		switch {
		case column+1+len(word) > 115:
			b.WriteByte('\n')
			column = 0
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
