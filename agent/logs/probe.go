package logs

import "github.com/rs/zerolog"

// ProbeLine is a line that the probe prints on the stderr of its JVM, behind "heapcam: ".
type ProbeLine struct {
	Level  zerolog.Level
	Format string // of the C source
	Cause  string
	Remedy string
}

// oracle are the lines of the probe's option oracle, which compares its walks with JVMTI's.
const oracle = "For tests of heapcam (probe option `oracle`): a comparison with JVMTI."

// Probe is every line that the probe prints. Whatever it prints, the program runs on.
var Probe = []ProbeLine{
	{warn, "not recording this JVM: %s",
		"The probe does not support this JVM, or cannot create its shared ring. The line says which.",
		"run `heapcam doctor PID`"},
	{warn, "not recording this JVM: option \"%s\" is unknown",
		"The probe does not know an option behind `-agentpath`.",
		"copy the option that `heapcam doctor --java-tool-options` prints"},
	{warn, "not recording this JVM: option \"%s\" has no value; write %s=VALUE",
		"An option behind `-agentpath` has no value.", "add the value"},
	{warn, "not recording this JVM: option spool:%s must be an absolute path of less than %d bytes",
		"The path of the spool folder cannot be used.", "correct the path"},
	{warn, "not recording this JVM: it does not offer JVMTI 11",
		"The JVM is not HotSpot.", "use a HotSpot JDK that heapcam supports"},
	{warn, "not recording this JVM: JDK %d is too old: heapcam records JDK %d and later",
		"The JDK is older than those that heapcam supports.", "use a newer JDK"},
	{warn, "not recording this JVM: %s is not HotSpot: heapcam records only HotSpot JVMs",
		"The JVM is OpenJ9 or a native image, or exports no tables of HotSpot's.",
		"use a HotSpot JDK that heapcam supports"},
	{warn, "process context: reading it has not ended, most likely because of userfaultfd; the thread that reads it " +
		"stays until the memory can be read",
		"The probe was detached while it read what an SDK of OpenTelemetry publishes. The program keeps that memory " +
			"from its readers.",
		"none is needed; restart the JVM to be rid of the thread"},
	{info, "JDK %d is untested: the heap is walked once more after each of the first %d collections",
		"The JDK is newer than those that heapcam was tested with. The probe checks itself while it records.", ""},
	{warn, "not recording this JVM: JVMTI AddCapabilities failed with error %d",
		"The JVM does not give the probe a JVMTI capability. Another agent may hold it.",
		"start the JVM without the other agent"},
	{warn, "not recording this JVM: cannot install the signal handler",
		"The system refused a signal handler.", "report it as a defect"},
	{warn, "not recording this JVM: not enough memory for the probe's options",
		"The process has no memory left.", "raise the memory limit of the container or process"},
	{warn, "not recording this JVM: not enough memory for the probe's tables",
		"The process has no memory left.", "raise the memory limit of the container or process"},
	{warn, "not loading the probe: this JVM is being recorded already",
		"The option `-agentpath` is there twice, or somebody attached to a JVM that is recorded.",
		"remove one of the two"},
	{warn, "JVMTI SetEventNotificationMode failed for %s: error %d",
		"The JVM refused an event.", "report it as a defect"},
	{warn, "another agent holds allocation sampling: recording without allocation sites",
		"A JVM gives allocation sampling to one agent: a profiler has it. Heap and pauses are recorded.",
		"stop the profiler; the probe then takes sampling over"},
	{info, "site table full: least-used frames evicted, new stacks truncated to known callers",
		"The program has more call sites than the table holds.", ""},
	{info, "sampled stacks: %llu of %llu that were compared differed from the JVM's; it is asked for all from now on",
		"The probe reads most stacks of sampled allocations itself, and compares some with what the JVM says. " +
			"Sampling costs more from here on.", "report it as a defect"},
	{info, "sampled stacks: %llu of %llu that the JVM described were not as read here; it is asked for each new one",
		"The probe composes new stacks from what the JVM's compilers write down, and compares this with what the JVM " +
			"says. Sampling costs more from here on.", "report it as a defect"},
	{info, "exact sites: off: the JVM does not let its classes be changed",
		"The JVM refuses the JVMTI capability to retransform classes.", ""},
	{info, "exact sites: off: %s",
		"The JVM lacks what this needs; the line says what. Sites are sampled.", ""},
	{info, "exact sites: %llu classes with %llu sites in %llu methods; left as they are: %llu methods, %llu classes " +
		"that were not understood, %llu that the JVM refused; CPU %llu ms; %llu objects, %llu of another type",
		"What was rewritten for `--sites exact`, and how many survivors have a site because of it.", ""},
	{info, "exact sites: %llu classes were left as they are: their class loaders load classes in ways of their own",
		"Of the objects that they allocate no site is exact.", ""},
	{info, "exact sites: %llu identity hashes have one",
		"How many objects got an identity hash from `--sites hash`.", ""},
	{info, "drag: off: this JVM must be started with the probe",
		"The probe was loaded into a JVM that ran already. `heapcam run --drag` starts one with it.", ""},
	{info, "drag: off: %s",
		"The JVM lacks what this needs; the line says what. The recording knows no uses of objects.", ""},
	{info, "drag: %llu classes with %llu uses in %llu methods; left as they are: %llu methods, %llu classes that " +
		"were not understood; CPU %llu ms; %llu calls with too many arguments; %llu objects followed, %llu times " +
		"one was locked",
		"What was rewritten for `heapcam run --drag`, and how many sampled objects were followed.", ""},
	{info, "drag: uses in %llu classes are not seen: the loaders of %llu load classes in ways of their own, and the " +
		"JVM refused %llu",
		"These classes were not rewritten. Objects that only they use seem to be unused.", ""},
	{info, "walks: %llu ranges by helper threads, %llu by the VM thread, %llu differ",
		"For tests of heapcam (probe option `crew`): what helper threads walked.", ""},
	{info, "ms a MiB with helper threads and alone: moves %.3f %.3f, births %.3f %.3f, listings %.3f %.3f",
		"For tests of heapcam (probe option `crew=9`): what phases of a pause took.", ""},
	{info, "proven sites: no more are found: %s",
		"A table of the probe is full. Objects that are born later have no proven site.", ""},
	{warn, "recording only samples: %d collections in a row could not be read, most likely because of unloaded " +
		"classes; next attempt after %u collections, later attempts after up to %d",
		"The heap holds objects of classes that were unloaded before the probe was attached.",
		"load the probe at the start of the JVM"},
	{warn, "stopped recording: %s (at %#llx)",
		"The probe read something in the heap that it does not know, or cannot write its shared ring.",
		"run `heapcam attach` to record again; report the line as a defect"},
	{warn, "stopped recording: the shared ring was truncated or cannot be written",
		"Another process changed the file of the shared ring, or its file system is full.",
		"keep other processes away from the folder for shared rings"},
	{debug, "collection %llu could not be read: %s (at %#llx)", oracle, ""},
	{debug, "sampled stacks: %llu composed; learnt from %llu, of which %llu differed", oracle, ""},
	{debug, "sampled stacks: %llu known, %llu new, %llu not read here; compared %llu, differed %llu", oracle, ""},
	{debug, "proven sites: %llu rounds, %u classes, %llu bodies, %llu sites, %llu not understood; CPU %llu us, " +
		"longest slice %llu us", oracle, ""},
	{debug, "oracle: class only in the walk: %s objects=%llu", oracle, ""},
	{debug, "oracle: differs %s jvmti=%llu/%llu walk=%llu/%llu", oracle, ""},
	{debug, "oracle: objects=%llu bytes=%llu jvmti_objects=%llu jvmti_bytes=%llu classes=%llu differ=%llu " +
		"unknown=%llu untagged=%llu holes=%u", oracle, ""},
	{debug, "oracle: unknown at %#llx in %u of kind %u (%#llx to %#llx): %#llx %#llx %#llx %#llx", oracle, ""},
	{debug, "oracle: hole %#llx to %#llx", oracle, ""},
	{debug, "references oracle: differs %.*s jvmti=%llu walk=%llu", oracle, ""},
	{debug, "references oracle: jvmti=%llu walk=%llu differ=%llu odd=%llu unreached=%llu torn=%llu " +
		"objects=%llu", oracle, ""},
	{debug, "oracle: no answer: %s", oracle, ""},
	{debug, "oracle: no answer: JVMTI error %d", oracle, ""},
	{debug, "oracle: no answer: a collection came in between each time", oracle, ""},
}
