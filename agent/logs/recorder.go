package logs

// Messages of one recording. Each has the field recording.
var (
	RecordingStarted = line(recorder, "recording-started", info, "recording started",
		"A JVM is recorded, for the first time or after a restart of the agent.", "")
	RecordingNamed = line(recorder, "recording-named", info, "the process context names the service",
		"An SDK of OpenTelemetry in the JVM has published its attributes, or has changed them. They hold from now on.",
		"")
	RecordingEnded = line(recorder, "recording-ended", info, "recording ended",
		"The JVM has ended, or the agent detached from it. Everything in the shared ring is stored.", "")
	JVMRefused = line(recorder, "jvm-refused", warn, "the probe refused to record the JVM",
		"The probe does not support this JVM or its options. The field cause says which. The JVM runs on.",
		"see the cause; run `heapcam doctor PID`")
	ProbeStopped = line(recorder, "probe-stopped", warn, "the probe stopped recording",
		"The probe could no longer read the heap or write its shared ring. The field cause says which. The JVM runs "+
			"on, and the recording stays readable.",
		"run `heapcam attach`, or restart the JVM, to record it again; report the line as a defect")
	RecordingStopped = line(recorder, "recording-stopped", fail, "recording stopped",
		"Another agent took the shared ring over, the ring cannot be read, or heapcam has a defect. The JVM runs on, "+
			"and the recording stays readable.",
		"if no other agent records the JVM, restart the JVM and report the line as a defect")
	RecordingEvicted = line(recorder, "recording-evicted", fail, "recording suspended: agent_max_memory is reached",
		"This recording held the most memory. It resumes when there is room. What the shared ring cannot hold until "+
			"then is lost.",
		"raise agent_max_memory, or exclude some JVMs by a rule")
	RingQuarantined = line(recorder, "ring-quarantined", fail, "shared-ring protocol violation: ring quarantined",
		"The shared ring holds bytes that no probe writes: memory was overwritten, or the file is forged. The agent "+
			"reads it no further. The JVM runs on.",
		"restart the JVM to record it again; report the line as a defect")
	RingWaits = line(recorder, "ring-waits", warn, "the JVM has ended, and its shared ring is not stored yet",
		"The disk refused the end of the recording. The agent tries again every minute.",
		"free space on the disk; do not remove the shared ring")
	RingStays = line(recorder, "drained-ring-not-removed", warn, "cannot remove a shared ring whose data is stored",
		"The file system refused. The ring occupies memory, and nothing in it is needed.", "remove the file")
	RingGrown = line(recorder, "ring-grown", info, "the JVM changed to a larger shared ring",
		"The probe needs more room for a sync point or for bursts.", "")
	BlockUnreadable = line(recorder, "block-unreadable", warn, "cannot decode a block of the probe",
		"The block is damaged, or the probe has a defect. After 16 such blocks the ring is quarantined.",
		"restart the JVM if the line repeats")
	NotClosed = line(recorder, "recording-not-closed", fail, "cannot close the recording",
		"The disk failed. The newest data may be missing.", "check the disk (dmesg, df), then run `heapcam verify`")
	WriteRefused = line(recorder, "write-refused", warn, "the store refused a write: dropping collections",
		"The disk is full or fails, or one collection needs more room than `max_trace_size` leaves. Collections are "+
			"dropped until a sync point can be written. At most one such line in 10 s.",
		"if the error says `no room below the limit`, raise `max_trace_size`; otherwise free space or repair the disk")
	RecordingGone = line(recorder, "recording-removed", fail,
		"the recording was removed or moved while it was written: beginning it anew",
		"Somebody else removed, moved or cut files of the recording. What they held is lost for heapcam. The agent "+
			"makes the folder again and begins a new ring file with the next sync point, or after three collections.",
		"do not remove or move the folder of a recording while its JVM runs")
	Undescribed = line(recorder, "jvm-undescribed", warn, "dropping collections of a JVM that is not described yet",
		"The agent that the JVM was described to has gone, and its recording too. The probe describes the JVM again "+
			"within a second. What it wrote before cannot be read.", "")
	FsyncFailed = line(recorder, "fsync-failed", warn, "fsync failed: starting a new ring file",
		"The disk did not keep what it had accepted.", "check the disk (dmesg, smartctl)")
	DiskHangs = line(recorder, "disk-hangs", fail, "the disk does not answer: recording waits",
		"A call to the file system has not returned for 5 s. The JVM runs on. What its shared ring cannot hold is "+
			"lost.",
		"check the disk (dmesg, df, mount); a network file system may need its server")
	DiskAnswers = line(recorder, "disk-answers", info, "the disk answers again: recording continues",
		"A call that hung has returned.", "")
	RingCapped = line(recorder, "recording-capped", warn, "the recording cannot grow: the disk is full",
		"The disk is full, or only `keep_free` is left. New data replaces old data: the window is shorter.",
		"free space on the disk")
	RingUncapped = line(recorder, "recording-uncapped", info, "the recording can grow again",
		"The disk has room.", "")
	SyncTooLarge = line(recorder, "sync-point-too-large", warn, "no sync point fits into the recording",
		"The heap has too many objects for `max_trace_size`, or the disk is full. Recording continues. A ring file "+
			"cannot be read without those before it.",
		"free space if the disk is full; otherwise raise max_trace_size to bytes_needed")
	SyncFits = line(recorder, "sync-point-fits", info, "sync points fit into the recording again",
		"The heap shrank, or the recording may be larger.", "")
	FilesLonger = line(recorder, "ring-files-longer", warn, "ring files are longer than configured",
		"Sync points are large, and a ring file holds four of them. The size of the recording varies more than "+
			"`max_trace_size_deviation` says.",
		"raise max_trace_size")
	SyncTooLong = line(recorder, "sync-point-too-long", warn,
		"depth lowered to samples: a sync point would take too long",
		"A sync point would take longer than 250 ms and `max_sync_pause`, and the agent cannot store one in parts.",
		"raise max_sync_pause, or accept samples for this JVM")
	SyncShort = line(recorder, "sync-point-short", info, "sync points are short enough again",
		"A sync point no longer takes that long. The depth rises.", "")
	DepthLowered = line(recorder, "depth-lowered", warn, "depth lowered to keep a limit",
		"Recording cost more than an overhead budget, or wrote more than a limit. The depth rises when there is room.",
		"raise the limit that the line names, if you need the greater depth")
	DepthRaised = line(recorder, "depth-raised", info, "depth raised: there is room below the limit",
		"Recording costs less than the limit.", "")
	IntervalChanged = line(recorder, "sampling-interval-changed", info, "sampling interval changed",
		"Sampling took too much time or little time, or the number of live samples was far from its target.", "")
	CompressionChanged = line(recorder, "compression-changed", info, "compression changed to keep a limit",
		"The agent reached `agent_max_cpu`, or has room again. With less compression the window is shorter.", "")
	LimitsChanged = line(recorder, "limits-changed", info, "limits changed",
		"The configuration was reloaded.", "")
	Paused = line(recorder, "recording-paused", info, "recording paused",
		"`heapcam pause`, or somebody created the file /etc/heapcam/disabled.", "")
	Resumed = line(recorder, "recording-resumed", info, "recording resumed",
		"`heapcam resume`, or somebody removed the file /etc/heapcam/disabled.", "")
	ProbeNote = line(recorder, "probe-note", info, "note from the probe",
		"The field note says what.", "")
	LogBounded = line(recorder, "log-bounded", warn, "too many log lines: leaving out all but errors",
		"One JVM, the rings of one folder, or the spool folder caused 100 lines in a minute.",
		"see `heapcam status` for the state of the JVM")
)

// Messages about recordings on the disk.
var (
	FileDamaged = line(store, "ring-file-damaged", warn, "cannot read a ring file completely",
		"The disk failed or lost power. The file stays until newer data replaces it.",
		"run `heapcam verify` on the recording")
	FileForeign = line(store, "ring-file-foreign", warn, "a ring file belongs to another recording",
		"Somebody copied it into the folder. heapcam neither counts nor removes it.", "move the file to its recording")
	TailCut = line(store, "tail-cut", info, "cut an incomplete frame off the end of the recording",
		"The agent was killed, or the power failed. What the shared ring still holds is stored again.", "")
	EndedRemoved = line(store, "ended-recording-removed", info, "removed the recording of an ended JVM",
		"`retain_ended` has passed.", "")
	EndedReplaced = line(store, "ended-recording-replaced", warn,
		"removed the recording of an ended JVM: a running one needs its space",
		"The folder would exceed `max_total_size`. The agent removes the oldest recordings first.",
		"raise max_total_size to keep more recordings")
	EndedForeign = line(store, "ended-recording-partly-removed", warn,
		"removed the recording of an ended JVM, except for files of another recording",
		"Somebody copied ring files of another recording into its folder.", "move the files to their recording")
	EndedStays = line(store, "ended-recording-not-removed", warn, "cannot remove the recording of an ended JVM",
		"The file system refused. Running JVMs get less space.", "check the folder's owner, mode and file system")
)

// Messages about the spool folder.
var (
	SpoolUnreadable = line(spool, "spool-unreadable", warn, "cannot read the spool folder",
		"The folder does not exist, or the agent may not read it.", "create the folder, or change its owner or mode")
	SpoolTaken = line(spool, "spool-taken", info, "took a recording from the spool folder",
		"Somebody copied it there. It is among the recordings now.", "")
	SpoolLeft = line(spool, "spool-left", warn, "cannot take a file from the spool folder",
		"The error says why: it is no recording, it is damaged, or there is no room.",
		"see the error; remove the file if it is no recording")
	SpoolNotRemoved = line(spool, "spool-not-removed", warn,
		"took a recording, but cannot remove it from the spool folder",
		"The agent may not write to the spool folder, or the file has changed since.",
		"remove the file, or it will be taken again after a restart")
)
