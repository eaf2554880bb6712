package logs

// Messages of the agent as a whole.
var (
	AgentReady = line(agent, "agent-ready", info, "agent is ready",
		"The agent listens for commands and records JVMs.", "")
	ProbeOption = line(agent, "probe-option", info, "JVMs that start with this option are recorded",
		"The agent has installed the probe's library.", "")
	ProbeNotInstalled = line(agent, "probe-not-installed", warn, "cannot install the probe's library",
		"No folder can hold a library that JVMs may load. JVMs that load a probe by their own options are recorded.",
		"make /tmp, /var/tmp or /dev/shm writable and not noexec, then restart the agent")
	ConfigReloaded = line(agent, "config-reloaded", info, "configuration reloaded",
		"`heapcam reload` or SIGHUP. Limits hold at once, rules for JVMs that are attached to from now on.", "")
	ConfigNotReloaded = line(agent, "config-not-reloaded", fail, "cannot reload the configuration",
		"The file cannot be read, or has an error. The old configuration stays in force.",
		"run `heapcam config check`, correct the file, then `heapcam reload`")
	MetricsFailed = line(agent, "metrics-failed", fail, "cannot serve metrics",
		"The address of `metrics` is in use or does not exist on this host. Recording continues.",
		"choose a free address for `metrics`, then restart the agent")
	MetricsTrouble = line(agent, "metrics-trouble", warn, "a request to the metrics port failed",
		"The error says why: no descriptor was free for a connection, or heapcam has a defect. Recording continues.",
		"report the line as a defect if it names heapcam's code")
	RemoteReady = line(agent, "remote-ready", info, "serving status and pulls to other hosts",
		"`remote` is set.", "")
	RemoteFailed = line(agent, "remote-failed", fail, "cannot serve status and pulls to other hosts",
		"The address is in use, or a certificate, key or token file cannot be used. Recording continues.",
		"correct the remote settings, then restart the agent")
	SwitchSet = line(agent, "switch-set", warn, "recording is switched off on this host",
		"Somebody created the file /etc/heapcam/disabled. While it exists, heapcam records no JVM and attaches to "+
			"none.",
		"remove the file to resume recording")
	SwitchRemoved = line(agent, "switch-removed", info, "recording is switched on again on this host",
		"Somebody removed the file /etc/heapcam/disabled.", "")
	SwitchNotPassed = line(agent, "switch-not-passed", warn, "cannot switch recording off or on in a JVM",
		"The agent cannot write to the JVM's shared ring. A probe that sees the file /etc/heapcam/disabled obeys it "+
			"without the agent.",
		"see in `heapcam status` whether the JVM is still recorded; if it should not be, restart it")
	DiskHangsAtStart = line(agent, "disk-hangs-at-start", fail, "the disk does not answer: the agent cannot start",
		"A call to the file system of the folder for recordings has not returned for 5 s. The agent waits.",
		"check the disk (dmesg, df, mount), or choose another folder with `out`")
	DiskHangsAtEnd = line(agent, "disk-hangs-at-end", fail,
		"the disk does not answer: the agent ends without closing recordings",
		"A call to the file system has not returned for 5 s. The shared rings hold what is not stored yet.",
		"check the disk (dmesg, df), then start the agent: it reads the shared rings of running JVMs")
	NoFileNotification = line(agent, "no-file-notification", warn, "file notification failed: polling for new JVMs",
		"The kernel gave no inotify instance. New shared rings are found up to 0.5 s later.",
		"raise fs.inotify.max_user_instances")
	RingsNotListed = line(agent, "rings-not-listed", warn, "cannot look for shared rings in a folder",
		"The folder cannot be read.", "check the owner and the mode of the folder")
	RingNotRecorded = line(agent, "ring-not-recorded", warn, "cannot record a shared ring",
		"The error says why: another agent records it, the disk is full, a limit is reached, its owner is wrong, or "+
			"it is not a shared ring. If the cause can pass, the agent tries again.",
		"see the error and \"not recorded\" in `heapcam status`")
	RingRemoved = line(agent, "ring-removed", info, "removed the unreadable shared ring of a JVM that has ended",
		"The ring was quarantined or never finished. Its memory is free again.", "")
	RingNotRemoved = line(agent, "ring-not-removed", warn, "cannot remove the shared ring of a JVM that has ended",
		"The file system refused. The ring occupies memory.", "remove the file")
	RingNotKept = line(agent, "ring-not-kept", warn, "systemd does not keep a shared ring",
		"systemd refused the descriptor. What is not stored yet is lost if both the JVM and the agent end.",
		"raise FileDescriptorStoreMax of heapcam.service")
	RingNotDropped = line(agent, "ring-not-dropped", warn, "cannot make systemd release a shared ring",
		"systemd did not take the message. It keeps the ring's memory until the service stops.",
		"restart heapcam.service when memory is short")
	KeptTooNew = line(agent, "kept-ring-too-new", warn, "a shared ring that systemd keeps needs a newer heapcam",
		"A newer agent recorded the JVM, and an older one runs now. systemd keeps the ring until the service stops.",
		"install the newer heapcam again and restart the service")
	KeptDropped = line(agent, "kept-ring-dropped", warn, "dropped a descriptor that systemd kept: it is no shared ring",
		"The descriptor is damaged, or is not heapcam's.",
		"nothing is lost; report the line as a defect if it repeats")
	IncidentFrozen = line(agent, "incident-frozen", warn, "incident frozen",
		"A JVM was killed or crashed, its heap was exhausted, or full collections took more than half of a minute. Or "+
			"somebody ran `heapcam freeze`. What the ring held is kept.",
		"run `heapcam pull --incident ID -o FILE` (with `--out` as of the agent), then `heapcam report FILE`")
	IncidentSkipped = line(agent, "incident-skipped", info, "incident not frozen: the last one is too recent",
		"A recording freezes at most one incident in 10 minutes by itself.", "")
	IncidentNotFrozen = line(agent, "incident-not-frozen", fail, "cannot freeze an incident",
		"Most often the disk is full, or `max_incidents_size` is reached. The window will be overwritten.",
		"free space or remove incidents, then run `heapcam freeze` at once")
	IncidentVerdict = line(agent, "incident-verdict", warn, "verdict on an incident",
		"What leaks or fills the heap in the window of an incident, as `heapcam leaks` says it.",
		"run `heapcam leaks` on the incident; `heapcam incidents` lists it")
	IncidentNoVerdict = line(agent, "incident-no-verdict", info, "no verdict on an incident",
		"Reading the incident took more memory or CPU time than the agent grants, or many incidents were frozen at "+
			"once. The incident itself is complete.", "")
	RunningVerdict = line(agent, "running-verdict", warn, "verdict on a running recording",
		"What leaks, as `heapcam leaks` says it of what the recording holds now. A verdict on the same site is "+
			"logged once.",
		"run `heapcam leaks` on the recording, or `heapcam freeze` to keep it")
	NoVerdict = line(agent, "no-verdict", info, "no verdict on a running recording",
		"Reading it took more memory or CPU time than the agent grants. The recording goes on.",
		"raise `verdict_interval`, or run `heapcam leaks` on another host")
	Uploaded = line(agent, "incident-uploaded", info, "incident uploaded",
		"The bucket of `upload` has the incident.", "")
	NotUploaded = line(agent, "incident-not-uploaded", warn, "cannot upload an incident",
		"The server cannot be reached, or refuses. The agent tries again, after up to five minutes. Recording and "+
			"incidents on this host are not affected.",
		"see the error: check address, credentials and the IPAddressAllow of heapcam.service")
	UploadDropped = line(agent, "upload-dropped", fail, "an incident was deleted before it was uploaded",
		"The bucket was away for too long, and the incident made room for newer ones; or somebody deleted it.",
		"make the bucket reachable, or raise `max_incidents_size`")
	UploadsNotKept = line(agent, "uploads-not-kept", warn, "cannot write which incidents are uploaded",
		"The disk is full or does not answer. After a restart the agent asks the bucket what it has.",
		"free space on the disk of `out`")
	ProfileNotMade = line(agent, "profile-not-made", warn, "cannot make a profile",
		"The profile of a JVM's heap is not valid in pprof's format.", "report the line as a defect")
	ProfilesNotPushed = line(agent, "profiles-not-pushed", warn, "cannot push profiles",
		"The server of `profiles_url` cannot be reached, or refuses. The agent tries again, after up to a minute, and "+
			"keeps up to 16 MiB of profiles. What the server refuses for good (400, 413, 415, 422) is dropped.",
		"see the error: check address, credentials and the IPAddressAllow of heapcam.service")
	ProfilesPushedAgain = line(agent, "profiles-pushed-again", info, "profiles are pushed again",
		"The server of `profiles_url` takes profiles again.", "")
	ProfilesDropped = line(agent, "profiles-dropped", warn, "profiles were dropped",
		"16 MiB of profiles wait for the server of `profiles_url`. The oldest ones make room.",
		"make the server reachable, or raise `profiles_interval`")
	ProfilesLost = line(agent, "profiles-lost", warn, "profiles were lost when the last agent ended",
		"It was killed, or could not write what waited for the server of `profiles_url`. The field profiles says how "+
			"many; `heapcam_profiles_dropped_total` counts them.",
		"find out what killed the agent; see the journal of the unit")
	ProfilesNotCounted = line(agent, "profiles-not-counted", warn, "cannot count profiles across a restart",
		"The file .profiles.count below `out` cannot be written or read. What a kill of the agent loses is not "+
			"counted.",
		"free space on the disk of `out`")
	TableNotWritten = line(agent, "table-not-written", warn, "cannot write a table",
		"The disk of `out` is full or does not answer. The rows of this interval are lost.",
		"free space on the disk of `out`")
	TablesNotUploaded = line(agent, "tables-not-uploaded", warn, "cannot upload a table",
		"The bucket of `upload` cannot be reached, or refuses. The agent tries again, after up to five minutes, and "+
			"keeps up to 64 MiB of tables, also across a restart.",
		"see the error: check address, credentials and the IPAddressAllow of heapcam.service")
	TablesDropped = line(agent, "tables-dropped", warn, "tables were dropped",
		"64 MiB of tables wait for the bucket of `upload`. The oldest ones make room.",
		"make the bucket reachable, or raise `upload_tables`")
	ProfilesNotKept = line(agent, "profiles-not-kept", warn, "cannot keep profiles across a restart",
		"The file .profiles below `out` cannot be written, read or removed. Profiles that waited for the server of "+
			"`profiles_url` are lost.", "free space on the disk of `out`")
	IncidentRemains = line(agent, "incident-remains", warn, "cannot remove the remains of an unfinished incident",
		"An agent was killed while it froze an incident.", "remove the folder that the error names")
)

// Messages about clients.
var (
	RequestAccepted = line(access, "request-accepted", info, "request accepted",
		"A client changes what is recorded, or how.", "")
	RequestRefused = line(access, "request-refused", warn, "request refused: the client may not use this verb",
		"The client is neither root nor in the group heapcam, or its token or certificate does not allow the verb.",
		"add the client to the group heapcam, or widen its token, if it should have this right")
	Pulled = line(access, "pulled", info, "recording pulled",
		"A client copied a recording.", "")
	PullAborted = line(access, "pull-aborted", warn, "pull aborted",
		"The client disconnected or stopped reading, or the recording cannot be read.",
		"repeat the pull; if it fails again, run `heapcam verify` on the recording")
)

// Messages about finding JVMs.
var (
	DiscoveryFailed = line(discovery, "discovery-failed", fail, "cannot watch for new JVMs",
		"/proc cannot be read.", "check that /proc is mounted and readable, then restart the agent")
	JVMNotRecorded = line(discovery, "jvm-not-recorded", warn, "JVM is not recorded",
		"The field cause says why. The field remedy says what to do in this case.",
		"run `heapcam doctor PID`")
	JVMIgnored = line(discovery, "jvm-ignored", debug, "JVM is ignored by a rule",
		"A rule of the configuration has `record: false`, or no rule selects the JVM.", "")
	MoreNotRecorded = line(discovery, "more-jvms-not-recorded", warn, "more JVMs of this user are not recorded",
		"One user's JVMs have caused 100 lines in a minute. Further ones are not logged in this minute.",
		"run `heapcam status`, which lists all of them")
	PodsNotListed = line(discovery, "pods-not-listed", warn, "cannot ask Kubernetes for the pods of this node",
		"The API server cannot be reached, or refuses. JVMs are recorded without what it says of their pods. The "+
			"agent tries again after 30 s. At most one such line in 10 minutes.",
		"see the error: the service account must be allowed to list pods (docs/how-to/kubernetes.md)")
)
