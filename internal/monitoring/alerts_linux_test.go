package monitoring

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// alertCase is what one alert must do: fire on the first series at that time, with that text, and neither before `for`
// has passed nor on the others.
type alertCase struct {
	fires   map[string]string // values by series, one a minute, in promtool's notation
	at      string            // when it fires
	before  string            // when it does not yet; "": there is no `for`
	labels  map[string]string // besides alertname and severity
	summary string
	quiet   []map[string]string // at no time
}

const (
	onHost = `job="heapcam",instance="h:9464"`
	onJVM  = onHost + `,recording="7-x",jvm="Shop"`
)

func one(series, values string) map[string]string { return map[string]string{series: values} }

func counter(name string) string { return name + "{" + onJVM + "}" }

var (
	ofHost = map[string]string{"job": "heapcam", "instance": "h:9464"}
	ofJVM  = map[string]string{"job": "heapcam", "instance": "h:9464", "recording": "7-x", "jvm": "Shop"}
)

var alertCases = map[string]alertCase{
	"HeapcamAgentDown": {
		fires: one(`up{`+onHost+`}`, "1 0x20"), at: "4m", before: "2m", labels: ofHost,
		summary: "no agent answers on h:9464: nobody reads the shared rings of its JVMs",
		// a restart; another exporter
		quiet: []map[string]string{one(`up{`+onHost+`}`, "1 0 1x20"), one(`up{job="node",instance="h:9100"}`, "0x20")},
	},
	"HeapcamAgentRestarts": {
		fires: one(`process_start_time_seconds{`+onHost+`}`, "100 100 200 300 400x20"), at: "5m", labels: ofHost,
		summary: "the agent on h:9464 has started 3 times within 15 minutes",
		quiet: []map[string]string{one(`process_start_time_seconds{`+onHost+`}`, "100 100 200 300x20"),
			one(`process_start_time_seconds{job="node",instance="h:9100"}`, "1 2 3 4 5 6x20")},
	},
	"HeapcamIncident": {
		fires: one(counter("heapcam_incidents_total"), "0x5 1x20"), at: "8m", labels: ofJVM,
		summary: "heapcam kept an incident of Shop: it was killed, its heap was exhausted, or it " +
			"collects most of the time",
		// old ones; an agent that begins anew
		quiet: []map[string]string{one(counter("heapcam_incidents_total"), "3x30"),
			one(counter("heapcam_incidents_total"), "3x5 0x20")},
	},
	"HeapcamNewVersionLeaks": {
		fires: versions(), at: "2000m",
		labels:  map[string]string{"service": "shop", "version": "1.3", "site_id": "new", "class": "C"},
		summary: "shop 1.3 leaks C, which the version before did not",
	},
	"HeapcamIncidentFailed": {
		fires: one(counter("heapcam_incidents_failed_total"), "0x5 1x20"), at: "8m", labels: ofJVM,
		summary: "heapcam could not keep an incident of Shop: the ring will overwrite the data",
		quiet:   []map[string]string{one(counter("heapcam_incidents_failed_total"), "1x30")},
	},
	"HeapcamCollectionsLost": {
		fires: one(`heapcam_lost_epochs_total{`+onJVM+`,reason="store"}`, "0x5 4x20"), at: "12m", before: "8m",
		labels:  with(ofJVM, "reason", "store"),
		summary: "the recording of Shop lacks collections (reason: store)",
		quiet:   []map[string]string{one(`heapcam_lost_epochs_total{`+onJVM+`,reason="store"}`, "9x30")},
	},
	"HeapcamDiskFull": {
		fires: one(counter("heapcam_disk_full"), "0 0 1x20"), at: "8m", before: "5m", labels: ofJVM,
		summary: "the recording of Shop on h:9464 cannot grow",
		quiet:   []map[string]string{one(counter("heapcam_disk_full"), "0 1 1 0x20")},
	},
	"HeapcamStoreFaults": {
		fires: one(counter("heapcam_store_faults_total"), "0x5 2x20"), at: "8m", labels: ofJVM,
		summary: "the disk of h:9464 refused 2 writes of the recording of Shop",
		quiet:   []map[string]string{one(counter("heapcam_store_faults_total"), "2x30")},
	},
	"HeapcamRingTooSmall": {
		fires: one(counter("heapcam_guarantee_met"), "1 0x50"), at: "35m", before: "20m", labels: ofJVM,
		summary: "max_trace_size is too small for the heap of Shop",
		quiet:   []map[string]string{one(counter("heapcam_guarantee_met"), "1 0x20 1x20")},
	},
	"HeapcamOverhead": { // 6 % of each minute: 2 in pauses, 4 in sampling
		fires: map[string]string{
			counter("heapcam_probe_pause_seconds_total"):    "0+1.2x40",
			counter("heapcam_probe_sampling_seconds_total"): "0+2.4x40", counter("heapcam_up_seconds_total"): "0+60x40",
		}, at: "30m", before: "9m", labels: ofJVM,
		summary: "heapcam takes 6% of the time of Shop",
		quiet: []map[string]string{{
			counter("heapcam_probe_pause_seconds_total"):    "0+1.2x40",
			counter("heapcam_probe_sampling_seconds_total"): "0+1.2x40", counter("heapcam_up_seconds_total"): "0+60x40",
		}, { // a JVM that has ended stands still for nobody
			counter("heapcam_probe_pause_seconds_total"):    "100x40",
			counter("heapcam_probe_sampling_seconds_total"): "100x40",
			counter("heapcam_up_seconds_total"):             "600x40",
		}},
	},
	"HeapcamSyncPauseLong": {
		fires: one(counter("heapcam_sync_pause_seconds"), "0.1 0.6x20"), at: "8m", before: "5m", labels: ofJVM,
		summary: "a sync point added 600ms to a pause of Shop",
		quiet:   []map[string]string{one(counter("heapcam_sync_pause_seconds"), "0.25x20")},
	},
	"HeapcamEmergencyUnanswered": {
		fires: one(counter("heapcam_emergencies_unanswered_total"), "0x5 1x20"), at: "8m", labels: ofJVM,
		summary: "Shop did not answer when a sync point was due",
		quiet:   []map[string]string{one(counter("heapcam_emergencies_unanswered_total"), "1x30")},
	},
	"HeapcamProbeGaveUp": {
		fires: one(`heapcam_recordings{`+onHost+`,phase="gave up"}`, "0 0 1x20"), at: "3m",
		labels:  map[string]string{"instance": "h:9464", "phase": "gave up"},
		summary: "a recording on h:9464 has ended: gave up",
		quiet: []map[string]string{one(`heapcam_recordings{`+onHost+`,phase="killed"}`, "0 1x20"),
			one(`heapcam_recordings{`+onHost+`,phase="recording"}`, "3x20")},
	},
	"HeapcamAttachFails": {
		fires: one(`heapcam_attach_failures_total{`+onHost+`,reason="denied"}`, "0x5 1x20"), at: "8m",
		labels:  map[string]string{"instance": "h:9464", "reason": "denied"},
		summary: "heapcam cannot attach to JVMs on h:9464: denied",
		quiet:   []map[string]string{one(`heapcam_attach_failures_total{`+onHost+`,reason="denied"}`, "5x30")},
	},
	"HeapcamNotRecorded": {
		fires: map[string]string{
			`heapcam_jvms_not_recorded{` + onHost + `,why="rights"}`:  "2x30",
			`heapcam_jvms_not_recorded{` + onHost + `,why="ignored"}`: "7x30",
		}, at: "12m", before: "9m", labels: map[string]string{"instance": "h:9464"},
		summary: "2 JVMs on h:9464 are not recorded",
		quiet: []map[string]string{
			one(`heapcam_jvms_not_recorded{`+onHost+`,why="ignored"}`, "7x30"),
			one(`heapcam_jvms_not_recorded{`+onHost+`,why="switch"}`, "3x30"),
			one(`heapcam_jvms_not_recorded{`+onHost+`,why="failed"}`, "1x8 0x30"),
		},
	},
}

const (
	before = "1x2400"
	later  = "_x1800 1x600"
)

// versions are three services. shop has a new version, which leaks a site that the one before did not, another that it
// did, and has a suspect; mail leaks in the only version that it ever had, and desk is new as a whole.
func versions() map[string]string {
	out := map[string]string{}
	run := func(service, version, values string) {
		out[`heapcam_recording_info{`+onJVM+`,service="`+service+`",version="`+version+`"}`] = values
	}
	leak := func(service, version, site, kind, values string) {
		out[`heapcam_leak_bytes_per_second{`+onJVM+`,service="`+service+`",version="`+version+`",site_id="`+site+
			`",class="C",kind="`+kind+`"}`] = values
	}
	run("shop", "1.2", before)
	run("shop", "1.3", later)
	leak("shop", "1.2", "old", "leak", "1x1200")
	leak("shop", "1.3", "old", "leak", later)
	leak("shop", "1.3", "new", "fills-heap", later)
	leak("shop", "1.3", "cache", "suspect", later)
	run("mail", "2", before)
	leak("mail", "2", "m", "leak", later)
	run("desk", "1", later)
	leak("desk", "1", "d", "leak", later)
	return out
}

func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	out[k] = v
	return out
}

// TestAlertsFire lets promtool play series to the rules: each alert fires on what it is for, not before its time, and
// not on what it is not for.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("not run: alerts against series (there is no promtool)")
	}
	abs, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	type (
		values struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		}
		alert struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		}
		look struct {
			At     string  `yaml:"eval_time"`
			Name   string  `yaml:"alertname"`
			Alerts []alert `yaml:"exp_alerts"`
		}
		play struct {
			Name     string   `yaml:"name"`
			Interval string   `yaml:"interval"`
			Series   []values `yaml:"input_series"`
			Looks    []look   `yaml:"alert_rule_test"`
		}
		file struct {
			Rules []string `yaml:"rule_files"`
			Every string   `yaml:"evaluation_interval"`
			Tests []play   `yaml:"tests"`
		}
	)
	f := file{Rules: []string{abs}, Every: "1m"}
	series := func(m map[string]string) (out []values) {
		for s, v := range m {
			out = append(out, values{s, v})
		}
		return out
	}
	all := alerts(t)
	for _, a := range all {
		c, ok := alertCases[a.Alert]
		if !ok {
			t.Errorf("%s: nothing shows that it fires", a.Alert)
			continue
		}
		if (c.before == "") != (a.For == "") {
			t.Errorf("%s waits for %q, the case says that it is quiet at %q", a.Alert, a.For, c.before)
		}
		fires := play{Name: a.Alert + " fires", Interval: "1m", Series: series(c.fires)}
		if c.before != "" {
			fires.Looks = append(fires.Looks, look{At: c.before, Name: a.Alert})
		}
		fires.Looks = append(fires.Looks, look{c.at, a.Alert, []alert{{
			with(c.labels, "severity", a.Labels["severity"]),
			with(a.Annotations, "summary", c.summary),
		}}})
		f.Tests = append(f.Tests, fires)
		for _, q := range c.quiet {
			quiet := play{Name: a.Alert + " is quiet", Interval: "1m", Series: series(q)}
			for _, at := range []string{"1m", "5m", "8m", "10m", "15m", "25m", "35m"} {
				quiet.Looks = append(quiet.Looks, look{At: at, Name: a.Alert})
			}
			f.Tests = append(f.Tests, quiet)
		}
	}
	if len(alertCases) != len(all) {
		t.Errorf("%d alerts, cases for %d", len(all), len(alertCases))
	}
	b, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "alerts.yml")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", name).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "SUCCESS") {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
