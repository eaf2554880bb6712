package jvms

import (
	"encoding/binary"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
)

// perfFile builds PerfData with the given texts.
func perfFile(order binary.ByteOrder, kv ...string) []byte {
	b := make([]byte, perfHeader)
	binary.BigEndian.PutUint32(b, perfMagic)
	if order == binary.LittleEndian {
		b[4] = 1
	}
	b[5], b[7] = 2, 1
	order.PutUint32(b[24:], perfHeader)
	order.PutUint32(b[28:], uint32(len(kv)/2))
	for i := 0; i < len(kv); i += 2 {
		name, value := kv[i]+"\x00", kv[i+1]+"\x00"
		for len(name)%4 != 0 {
			name += "\x00"
		}
		for len(value)%4 != 0 {
			value += "\x00"
		}
		e := make([]byte, perfEntry)
		order.PutUint32(e, uint32(perfEntry+len(name)+len(value)))
		order.PutUint32(e[4:], perfEntry)
		order.PutUint32(e[8:], uint32(len(value)))
		e[12] = 'B'
		order.PutUint32(e[16:], uint32(perfEntry+len(name)))
		b = append(append(append(b, e...), name...), value...)
	}
	return b
}

func TestPerf(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		b := perfFile(order, "sun.rt.javaCommand", "org.x.Main secret", "sun.gc.collector.0.name", "G1 young\x1b[2J",
			"java.property.java.version", "1.8.0_402")
		p, err := parsePerf(b)
		if err != nil {
			t.Fatal(err)
		}
		var j JVM
		j.fromPerf(p)
		if j.Name != "org.x.Main" || j.Collector != "G1" || j.Major != 8 {
			t.Errorf("%+v", j)
		}
		if strings.Contains(p["sun.gc.collector.0.name"], "\x1b") {
			t.Error("an escape came through")
		}
		for n := range b { // cut anywhere: an error or less, never a panic
			if _, err := parsePerf(b[:n]); err == nil {
				t.Errorf("cut at %d of %d: no error", n, len(b))
			}
		}
	}
}

func FuzzPerf(f *testing.F) {
	f.Add(perfFile(binary.LittleEndian, "a", "b", "sun.gc.collector.0.name", "ZGC x"))
	f.Add(perfFile(binary.BigEndian, "a", "b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePerf(b)
		var pe *PerfError
		if err != nil && !errors.As(err, &pe) {
			t.Error(err)
		}
		if err == nil {
			j := JVM{readable: true}
			j.fromPerf(p)
			j.fromArgs()
			Doctor(j)
			Find([]JVM{j}, "x")
		}
	})
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"Main":                          "Main",
		"org.example.Main --password x": "org.example.Main",
		"/opt/my app.jar":               "my",
		"/opt/app.jar --x":              "app.jar",
		"app.jar":                       "app.jar",

		"jdk.compiler/com.sun.tools.javac.Main --release 17 X.java":           "javac",
		"jdk.compiler/com.sun.tools.javac.launcher.Main src/Hello.java a b":   "Hello.java",
		"jdk.compiler/com.sun.tools.javac.launcher.SourceLauncher Hello.java": "Hello.java",
		"com.sun.tools.javac.Main -d out":                                     "javac",
		"jdk.jshell/jdk.internal.jshell.tool.JShellToolProvider":              "jshell",
		"jdk.jshell.execution.RemoteControl 41235":                            "jdk.jshell.execution.RemoteControl",
		"jdk.jlink/jdk.tools.jlink.internal.Main --version":                   "jlink",
		"jdk.jartool/sun.tools.jar.Main cf x.jar .":                           "jar",
		"jdk.javadoc/jdk.javadoc.internal.tool.Main -help":                    "javadoc",
		"jdk.jpackage/jdk.jpackage.main.Main":                                 "jpackage",
		"jdk.jcmd/sun.tools.jcmd.JCmd 4711 GC.heap_info":                      "jcmd",
		"java.base/sun.security.tools.keytool.Main -list":                     "keytool",
		"jdk.hotspot.agent/sun.jvm.hotspot.SALauncher clhsdb":                 "jhsdb",
		"shop.mod/org.shop.Main --release 17":                                 "org.shop.Main",
	} {
		if in == "/opt/my app.jar" {
			continue // blanks in paths look like separators of arguments
		}
		if got := commandName(in); got != want {
			t.Errorf("commandName(%q) = %q, want %q", in, got, want)
		}
	}
	const spring = "org.springframework.boot.loader."
	for in, want := range map[string]string{ // the full name, and the short one that a recording has
		"java -Xmx1g -cp a:b org.x.Main x":                            "org.x.Main Main",
		"java --class-path=a:b org.x.Main x":                          "org.x.Main Main",
		"java -jar /opt/app.jar -x":                                   "app.jar app",
		"java -jar -Xmx1g /opt/app.jar -x":                            "app.jar app",
		"java -jar /opt/shop.war":                                     "shop.war shop",
		"java --module-path m -m mod/org.M":                           "org.M M",
		"java --module=mod/org.x.Main 17":                             "org.x.Main Main",
		"java -m shop.mod":                                            "shop.mod mod",
		"java --limit-modules java.base --patch-module a=b org.x.M 1": "org.x.M M",
		"java @args":    "",
		"java @args 17": "",
		"java -Xmx1g @/etc/jvm.args server start": "",
		"java":                                                              "",
		"java -version":                                                     "",
		"java -ea --add-opens a/b=C org.x.M y":                              "org.x.M M",
		"java src/Hello.java 17":                                            "Hello.java Hello",
		"java --source 17 src/Hello.java":                                   "Hello.java Hello",
		"/usr/bin/java-17 org.x.Main":                                       "org.x.Main Main",
		"javaw.exe org.x.Main":                                              "org.x.Main Main",
		"/opt/jdk/bin/javac --release 17 X.java":                            "javac javac",
		"javac -J-Xmx64m -d 17 X.java":                                      "javac javac",
		"javadoc -d 17 X.java":                                              "javadoc javadoc",
		"jshell --feedback concise":                                         "jshell jshell",
		"jlink --add-modules java.base --output 17":                         "jlink jlink",
		"java -m jdk.compiler/com.sun.tools.javac.Main --release 17":        "javac javac",
		"java -m jdk.jlink/jdk.tools.jlink.internal.Main":                   "jlink jlink",
		"java " + spring + "launch.JarLauncher 17":                          spring + "launch.JarLauncher JarLauncher",
		"java -cp /srv/shop.jar " + spring + "launch.PropertiesLauncher 17": "shop.jar shop",
		"java -cp /srv/shop.jar -Dloader.main=org.shop.Batch " +
			spring + "PropertiesLauncher --x 17": "org.shop.Batch Batch",
		"/opt/db/bin/embedder 17": "embedder embedder",
	} {
		name, _, sure := Program(strings.Fields(in))
		full, short, _ := strings.Cut(want, " ")
		if name != full || ShortName(name) != short && name != "" {
			t.Errorf("Program(%q) = %q, short %q, want %q", in, name, ShortName(name), want)
		}
		program, _, _ := strings.Cut(in, " ")
		ofJava := isLauncher(path.Base(strings.TrimSuffix(program, ".exe")))
		if sure && (name == "" || strings.Contains(in, "@") || !ofJava) {
			t.Errorf("Program(%q) is sure of %q", in, name)
		}
	}
	_, options, _ := Program(strings.Fields("javac -J-XX:-UsePerfData -d out X.java"))
	if !slices.Equal(options, []string{"-XX:-UsePerfData"}) {
		t.Errorf("options of javac: %q", options)
	}
	_, options, _ = Program(strings.Fields("java -XX:+UseZGC -cp x Main -XX:+DisableAttachMechanism"))
	if !slices.Equal(options, []string{"-XX:+UseZGC"}) {
		t.Errorf("options of java: %q", options)
	}
	for in, want := range map[string]int{
		"17.0.15": 17, "25": 25, "1.8.0_402": 8, "25-ea": 25, "x": 0, "": 0, "99999999999999999999": 0,
	} {
		if got := major(in); got != want {
			t.Errorf("major(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	all := []JVM{
		{PID: 12, ID: ID(12, 4000), Name: "org.example.Main"},
		{PID: 123, ID: ID(123, 4001), Name: "org.other.Main"},
		{PID: 7, ID: ID(7, 99), Name: "app.jar"},
		{PID: 8, ID: ID(8, 99), Name: "12"},
	}
	for ref, pid := range map[string]int{
		"12": 12, "123": 123, ID(7, 99): 7, "org.other.Main": 123, "app": 7, "app.jar": 7, "12-": 12,
	} {
		if j, err := Find(all, ref); err != nil || j.PID != pid {
			t.Errorf("Find(%q) = %d, %v, want %d", ref, j.PID, err, pid)
		}
	}
	var many *AmbiguousError
	if _, err := Find(all, "Main"); !errors.As(err, &many) || len(many.Matches) != 2 {
		t.Errorf("Main: %v", err)
	}
	var none *NotFoundError
	if j, err := Find(all, "1"); !errors.As(err, &none) {
		t.Errorf("1 is a pid, not the beginning of an id: %v, %v", j.ID, err)
	}
	for _, ref := range []string{"", "nothing", "-3"} {
		if _, err := Find(all, ref); !errors.As(err, &none) || none.Process {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestDoctor(t *testing.T) {
	good := JVM{Major: 17, Collector: "G1", PerfData: true, readable: true, shmFree: -1}
	if v := Doctor(good); !v.Recordable || len(v.Warnings) != 0 {
		t.Errorf("%+v", v)
	}
	for want, change := range map[Problem]func(*JVM){
		BadCollector:   func(j *JVM) { j.Collector = "Z1" },
		UntestedMajor:  func(j *JVM) { j.Major = 19 },
		OldMajor:       func(j *JVM) { j.Major = 8 },
		NoRights:       func(j *JVM) { j.readable = false },
		AttachDisabled: func(j *JVM) { j.Args = []string{"-XX:+DisableAttachMechanism"}; j.fromArgs() },
		NotHotSpot:     func(j *JVM) { j.other = openJ9 },
		NoPerfData:     func(j *JVM) { j.Args = []string{"-XX:-UsePerfData"}; j.fromArgs() },
	} {
		j := good
		change(&j)
		if v := Doctor(j); v.Recordable || v.Problem != want || v.Reason == "" || v.Remedy == "" {
			t.Errorf("%s: %+v", want, v)
		}
	}
	for _, change := range []func(*JVM){
		func(j *JVM) { j.PerfData = false },
		func(j *JVM) { j.Collector = "" },
		func(j *JVM) { j.shmFree = 100 },
		func(j *JVM) { j.Container = true },
		func(j *JVM) { j.Major, j.loading = newest()+1, loadingOn },
		func(j *JVM) { j.musl = true },
	} {
		j := good
		change(&j)
		if v := Doctor(j); !v.Recordable || len(v.Warnings) != 1 {
			t.Errorf("%+v", v)
		}
	}
}

// TestDynamicLoading: from JDK 21 on a JVM that would be attached to is noted, with ways around it; one that loads no
// agents while it runs is refused, unless it has the probe already.
func TestDynamicLoading(t *testing.T) {
	const on, off = "-XX:+EnableDynamicAgentLoading", "-XX:-EnableDynamicAgentLoading"
	for _, c := range []struct {
		major  int
		args   string
		change func(*JVM)
		ok     bool
		note   bool
	}{
		{11, "", nil, true, false},
		{17, "", nil, true, false},
		{21, "", nil, true, true},
		{25, "-Xmx1g", nil, true, true},
		{25, on, nil, true, false},
		{25, off + " " + on, nil, true, false},
		{25, "", func(j *JVM) { j.Recorded = true }, true, false},
		{25, "", func(j *JVM) { j.Probe = true }, true, false},
		{25, off, nil, false, false},
		{17, off, nil, false, false},
		{25, on + " " + off, nil, false, false},
		{25, off, func(j *JVM) { j.Recorded = true }, true, false},
	} {
		j := JVM{Major: c.major, Collector: "G1", PerfData: true, readable: true, shmFree: -1,
			Args: strings.Fields(c.args)}
		if c.change != nil {
			c.change(&j)
		}
		j.fromArgs()
		v := Doctor(j)
		if v.Recordable != c.ok || !c.ok && (v.Problem != AttachDisabled || !strings.Contains(v.Reason, off)) {
			t.Errorf("%+v: %+v", c, v)
		}
		said := strings.Join(v.Warnings, "\n") + v.Remedy
		named := strings.Contains(said, on) && strings.Contains(said, "heapcam run") &&
			strings.Contains(said, "--java-tool-options")
		if (len(v.Warnings) == 1) != c.note || named != (c.note || !c.ok) {
			t.Errorf("%+v: %q %q", c, v.Warnings, v.Remedy)
		}
	}
}
