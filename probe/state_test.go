package probe

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"
)

// outlive are the variables of the probe that are not of one recording, each with its reason. What is not here must be
// PER_RECORDING: attaching after a detach would begin with what the last recording left.
var outlive = map[string]string{
	"jvmti":                 "the JVMTI environment, one for all recordings",
	"java_vm":               "the JVM",
	"naps":                  "a monitor of that environment",
	"opt":                   "made anew from the options",
	"version_mark":          "a constant",
	"recording":             "recording.c",
	"is_open":               "recording.c",
	"inside":                "recording.c",
	"pauses":                "recording.c",
	"recording_no":          "recording.c",
	"pristine":              "recording.c",
	"memory_lock":           "recording.c",
	"pieces":                "recording.c",
	"guard_env":             "the guard's, within one pause",
	"armed":                 "likewise",
	"armed_thread":          "likewise",
	"next_free":             "stamps.c: objects keep the hashes of earlier recordings",
	"guards":                "handlers: others may have built on them",
	"said":                  "recording.c",
	"violated":              "likewise",
	"violated_at":           "likewise",
	"unknown":               "likewise",
	"guard_without_handler": "made anew by vm_load",
	"me":                    "of a thread, which compares the recording's number",
	"last":                  "likewise",
	"dice":                  "of a thread: random numbers",
	"has":                   "what the JVM can do",
	"take_bodies":           "vmrows.c: made anew from the options",
	"take_scopes":           "vmrows.c: made anew from the JVM's version",
	"at":                    "metadata.c: offsets of the JVM, read anew when recording begins",
	"keys":                  "of the C library",
	"copy_by_file":          "of the system: it allows no other copy",
	"phase":                 "shadow.c: read by rewritten code that may still run; 0 between recordings",
	"table":                 "shadow.c: where that code writes",
	"table_bytes":           "likewise",
	"outside":               "likewise",
	"defined":               "exact.c: a helper class stays in the JVM",
	"recordings":            "exact.c: how often the classes of the JVM were changed",
	"slots":                 "changed.c: what was found of classes, which stay in the JVM",
	"size":                  "likewise",
	"used":                  "likewise",
	"full":                  "changed.c: set anew by changed_begin",
	"lock":                  "changed.c: of those",
	"given":                 "shadow.c: code of an earlier recording may still run; no number is given twice",
	"before":                "shadow.c: what recordings before have given",
	"builtin":               "jvm.c: a class of the JDK",
	"loader_class":          "jvm.c: a class of the JDK",
	"reflection":            "jvm.c: a class of the JDK",
	"load":                  "jvm.c: a method of the JDK",
	"load_resolve":          "jvm.c: a method of the JDK",
	"parent":                "jvm.c: a field of the JDK",
	"lock_map":              "jvm.c: a field of the JDK",
	"expected":              "shadow.c: what that code reads of a site",
	"shift":                 "likewise",
	"time_shift":            "os_posix.c: of the process' time namespace",
	"time_shift_known":      "likewise",
	"members":               "pool.c: threads, of which one may not have ended",
	"nmembers":              "likewise",
	"bell":                  "likewise",
	"quitting":              "likewise",
	"number":                "likewise",
	"to_do":                 "likewise",
	"to_rest":               "likewise",
	"pool_job":              "likewise",
	"threads":               "of the C library",
	"mates":                 "crew.c: what such a thread may still read",
	"units":                 "likewise",
	"nunits":                "likewise",
	"most_units":            "likewise",
	"first":                 "likewise",
	"taken":                 "likewise",
	"window":                "likewise",
	"nphase":                "likewise",
	"after":                 "likewise",
	"cmp":                   "crew.c: a test's, within one listing",
	"clock_now":             "uses.c: code in classes reads it at its address, also after detaching",
}

// framesOf are the variables of frames.c that say where the JVM's code and the parts of a thread lie: of the JVM's
// tables, read anew when recording begins.
var framesOf = strings.Fields("anchor_sp anchor_fp anchor_pc anchor stack_base stack_bytes wrapper_anchor wrapper " +
	"header_bytes frame_words stub_offset compile_id block_bytes blob_bytes nmethod_bytes ncodes codes " +
	"interpreter interpreter_end from_entry")

// scopesOf are those of scopes.c.
var scopesOf = strings.Fields("method_body body_code nmethod_method pc_offset pc_scope body_bytes pc_bytes excluded")

// contextOf are those of context.c that its thread uses, which may be late and outlive a recording.
var contextOf = strings.Fields("found ready quitting ended there thread b line message now")

// TestState compares every variable of the library with that list. What vmstructs.c knows of the JVM stays true as long
// as the JVM runs.
func TestState(t *testing.T) {
	lib, err := Library()
	if err != nil {
		t.Skip("not run: the probe's variables (the probe is not compiled: make probe)")
	}
	f, err := elf.NewFile(bytes.NewReader(lib))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	file, kept := "", 0
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FILE {
			file = s.Name
		}
		kind := elf.ST_TYPE(s.Info)
		if kind != elf.STT_OBJECT && kind != elf.STT_TLS || int(s.Section) >= len(f.Sections) {
			continue
		}
		sec := f.Sections[s.Section]
		name, _, _ := strings.Cut(s.Name, ".") // of a variable within a function
		switch {
		case sec.Flags&elf.SHF_WRITE == 0 || strings.HasPrefix(s.Name, "_") || name == "completed" ||
			slices.Contains([]string{".data.rel.ro", ".dynamic"}, sec.Name):
		case sec.Name == "hc_recording":
			kept++
		case strings.HasPrefix(file, "vm") || strings.HasPrefix(s.Name, "vm"):
		case file == "frames.c" && slices.Contains(framesOf, name):
		case file == "scopes.c" && slices.Contains(scopesOf, name):
		case file == "context.c" && slices.Contains(contextOf, name):
		case outlive[name] == "":
			t.Errorf("%s (%s): neither PER_RECORDING nor listed here", s.Name, file)
		}
	}
	if kept < 50 {
		t.Errorf("%d variables are PER_RECORDING: is the library stripped?", kept)
	}
}
