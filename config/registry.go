package config

// Groups is the registry: every setting of `heapcam agent`, by subject. It includes the flags of the other verbs that
// record.
var Groups = []Group{
	{"What is recorded", []Def{
		{Key: "discover", Kind: Bool, Default: "false", Packaged: "true",
			Help: "Attach to every JVM of this host as it starts, unless a rule of the configuration excludes it."},
		{Key: "depth", Kind: Choice, Choices: []string{"samples", "survivors", "full"}, Placeholder: "DEPTH",
			Default: "survivors",
			Help: "What heapcam records: samples (allocation sites and pauses), survivors (every object that " +
				"survives a collection) or full (every object).",
			Wins:   "overhead_cpu, overhead_pause, max_sync_pause, the write rates and agent_max_cpu lower it.",
			Reload: NextAttach},
		{Key: "sampling", Kind: Bytes, Default: "512KiB", Help: "Mean number of bytes between two sampled allocations.",
			Zero: "every allocation", More: "At most 1GiB. At 512KiB heapcam shortens it, down to 64KiB, while " +
				"sampling_max_overhead and overhead_cpu leave room.",
			Wins: "overhead_cpu, sampling_max_overhead and sampling_target_live_samples lengthen it. If the probe " +
				"has no room for the samples, it becomes 64KiB.",
			Reload: NextAttach},
		{Key: "sampling_max_overhead", Kind: Percent, Default: "1%", Zero: "unlimited",
			Help: "Share of wall time that sampling may take: CPU time of all threads together. Above it, " +
				"heapcam samples less often. With --sampling this limit is off, unless you set it too.",
			More:   "heapcam samples more often again when there is room.",
			Wins:   "overhead_cpu overrides it.",
			Reload: AtOnce},
		{Key: "sampling_target_live_samples", Kind: Count, Default: "0", Zero: "no target; --sampling applies",
			Help:   "Number of samples of live objects to aim for. heapcam adapts the sampling interval to it.",
			Wins:   "sampling_max_overhead and overhead_cpu override it.",
			Reload: AtOnce},
		{Key: "stack_depth", Kind: Count, Default: "64",
			Help: "Number of frames that heapcam records of an allocation site, innermost first: 1 to 512.",
			More: "A recording has at most 262,144 frames of all sites together, and 65,536 methods. When the " +
				"table is full, heapcam evicts the least used frames, and cuts new stacks to the callers that it " +
				"knows. The log says so once. `report` and `status --json` (`sites_cut`, `sites_folded`) say how " +
				"often it happened.",
			Reload: NextAttach},
		{Key: "thread_names", Kind: Choice, Choices: []string{"off", "folded", "full"}, Placeholder: "MODE",
			Default: "folded", Reload: NextAttach,
			Help: "How heapcam records names of threads: off, folded (a # replaces each run of digits) or full."},
		{Key: "allow_untested_jdk", Kind: Bool, Default: "false", Reload: NextAttach,
			Help: "Record JDK versions between the tested ones, if a self-check passes. Newer JDKs need no setting."},
		{Key: "sites", Kind: Choice, Choices: []string{"sampled", "exact", "hash"}, Placeholder: "SOURCE",
			Default: "sampled", Reload: NextAttach,
			Help: "Where sites come from: sampled, exact (experimental: sets depth full and changes the bytecode of " +
				"all classes), or hash (exact, and written to the heap as identity hashes).",
			More: "A JVM that runs already has to compile its code anew after that. Only JDK 17 and later with " +
				"Serial, Parallel or G1, on Linux. With hash, sites outlive full collections: each object that " +
				"survives gets an identity hash that says its site. Full collections then take longer, and it needs " +
				"JDK 17 to 25."},
		{Key: "proven_sites", Kind: Bool, Default: "true", Reload: NextAttach,
			Help: "Read bytecodes to prove where objects were allocated. Only JDK 17 and 25 with Serial, Parallel or " +
				"G1."},
	}},
	{"Disk", []Def{
		{Key: "out", Kind: Text, Placeholder: "DIR", Packaged: "/var/lib/heapcam",
			Help: "Folder for recordings, one ring folder per JVM, and for incidents.",
			Zero: "$HEAPCAM_OUT, else ./heapcam-recordings; for an agent of root /var/lib/heapcam"},
		{Key: "max_trace_size", Kind: Bytes, Default: "1GiB",
			Help: "Size on disk of the recording of one JVM. At least 1MiB. The newest data replaces the oldest.",
			Wins: "max_total_size, keep_free and a full disk override it."},
		{Key: "max_trace_size_deviation", Kind: Fraction, Default: "0.25",
			Help: "How far a recording may be above or below its size: a fraction above 0, at most 0.5. It never " +
				"exceeds size * (1 + deviation).",
			More: "Once the ring was full, the part that can be read without gaps has at least size * (1 - " +
				"deviation)."},
		{Key: "max_total_size", Kind: Bytes, Default: "0", Zero: "unlimited",
			Help: "Size of all recordings and incidents together. Each JVM gets an equal part, at most its " +
				"--max-trace-size.",
			More: "A ring that needs it takes space from ended rings first, the oldest first, then from larger " +
				"ones, by whole files. heapcam refuses a ring that would get less than 1 MiB, and tries again later.",
			Wins: "keep_free and a full disk override it."},
		{Key: "keep_free", Kind: Bytes, Default: "0", Zero: "no reserve",
			Help: "Disk space that recordings leave free. With less, they stop growing and reuse their own space.",
			More: "A recording that cannot even do that drops whole collections and counts them.",
			Wins: "A full disk overrides it."},
		{Key: "retain_ended", Kind: Duration, Default: "0s", Zero: "until their space is needed",
			Help: "How long to keep recordings of ended JVMs.",
			Wins: "max_total_size overrides it: recordings are removed earlier."},
		{Key: "max_incidents_size", Kind: Bytes, Default: "4GiB", Zero: "no automatic incidents",
			Help: "Size of all incidents together. To make room, heapcam deletes the oldest automatic incidents.",
			Wins: "max_total_size overrides it."},
		{Key: "max_write_rate", Kind: Rate, Default: "0", Zero: "unlimited",
			Help: "Bytes per second that one recording may write. Above it, heapcam lowers the depth.",
			More: "It lowers the depth by one step after ten seconds above the limit. It raises the depth again " +
				"after a minute below a quarter of the limit.",
			Wins: "A smaller part of max_total_write_rate overrides it.", Reload: AtOnce},
		{Key: "max_total_write_rate", Kind: Rate, Default: "0", Zero: "unlimited",
			Help: "Bytes per second that all recordings together may write. Each JVM gets an equal part. Above " +
				"its part, heapcam lowers its depth.",
			More: "Other JVMs may use what one JVM does not use.",
			Wins: "A smaller max_write_rate overrides a JVM's part.", Reload: AtOnce},
		{Key: "fsync_interval", Kind: Duration, Default: "1s",
			Help: "Longest time between two fsync calls of a ring. A power failure loses at most this much."},
		{Key: "compression", Kind: Choice, Choices: []string{"none", "partial", "full", "adaptive"},
			Placeholder: "MODE",
			Default:     "adaptive",
			Help: "How heapcam compresses recordings: none, partial, full or adaptive (full while CPU and " +
				"shared ring allow it).",
			More: "With partial, heapcam compresses only when it falls behind, so that less has to be written: " +
				"while the " +
				"shared ring is fuller than compression_threshold. With adaptive, it compresses less while the host " +
				"has no idle CPU.",
			Wins: "agent_max_cpu lowers it."},
		{Key: "compression_threshold", Kind: Fraction, Default: "0.2",
			Help: "With --compression partial: heapcam compresses only while the shared ring is fuller than this " +
				"fraction, above 0 and at most 1."},
	}},
	{"In the JVM", []Def{
		{Key: "overhead_cpu", Kind: Percent, Default: "2%", Zero: "unlimited",
			Help: "Share of wall time, of any minute, that the probe may take from a JVM. Above it, heapcam lowers " +
				"the depth and samples less often. With --depth full or another --sampling it is unlimited, unless " +
				"you set it.",
			More: "The probe measures it: its part of pauses, and its sampling callbacks. In a storm of full " +
				"collections another limit replaces it, with any depth and sampling: 5 % of any ten seconds. If you " +
				"set 0%, storms are not limited, either.",
			Wins: "None: with overhead_pause, the one that is reached first counts.", Reload: AtOnce},
		{Key: "overhead_pause", Kind: Duration, Default: "0s", Packaged: "0s", Zero: "unlimited",
			Help: "Longest time that recording may add to a pause without a sync point. Above it, heapcam lowers " +
				"the depth.",
			Wins: "None: with overhead_cpu, the one that is reached first counts.", Reload: AtOnce},
		{Key: "max_sync_pause", Kind: Duration, Default: "10ms", Zero: "unlimited",
			Help: "Longest time that a sync point may add to a pause, 1ms to 1m. If a fifth of the pause is more, " +
				"that is the limit. A longer listing is spread over pauses.",
			More: "An agent that cannot store listings in parts allows at least 250 ms. So does a listing in a storm " +
				"of full collections.",
			Wins: "A budget of overhead_cpu that leaves less time overrides it.", Reload: NextAttach},
		{Key: "max_reference_pause", Kind: Duration, Default: "250ms", Zero: "heapcam takes none by itself",
			Help: "Longest time that a reference listing which nobody asked for may stop the JVM, at most 1m. " +
				"heapcam takes one for an incident, if the JVM still runs, and when the heap is nearly full.",
			More: "The probe refuses a listing that is expected to take longer, or that needs more than half of the " +
				"memory that the JVM's cgroup has left. The incident then says why it has none.",
			Wins: "In a storm of full collections its time counts as part of 5 % of any ten seconds.", Reload: AtOnce},
		{Key: "references_interval", Kind: Duration, Default: "0s", Packaged: "1h",
			Zero: "none by time; with heapcam run after 30s, then whenever the recording is half as old again",
			Help: "Time between two reference listings that nobody asked for, at least 1m.",
			More: "Such a listing takes at most half of the time that overhead_cpu leaves. If that is too short, " +
				"heapcam tries again later. The first one comes after half of the interval or more. heapcam also " +
				"takes one when more than 75 % of the largest heap are in use after a collection of old space.",
			Wins: "max_reference_pause and overhead_cpu override it.", Reload: AtOnce},
		{Key: "emergency", Kind: Choice, Choices: []string{"walk", "gc", "off"}, Placeholder: "MODE",
			Default: "walk",
			Help: "What heapcam does when a sync point is due and no collection happens: walk (a pause without a " +
				"collection), gc (a full collection) or off (drop collections and count them).",
			Wins: "max_sync_pause overrides it."},
		{Key: "shm_size", Kind: Bytes, Default: "0", Reload: NextAttach,
			Zero: "4 MiB at first; it grows with the heap up to 64 MiB, or to 5 % of the cgroup's free memory if " +
				"that is less",
			Help: "Size of each JVM's shared ring, a power of two. The ring is memory of the JVM's cgroup.",
			More: "At depth full it starts with up to 32 MiB. A size that you set does not change. The RSS of the " +
				"JVM " +
				"counts the ring twice, its cgroup once.",
			Wins: "At 0 the memory of the cgroup limits it. If the ring is then too small for a listing of the heap, " +
				"heapcam records the JVM without listings."},
	}},
	{"The agent itself", []Def{
		{Key: "agent_max_cpu", Kind: Percent, Default: "0%", Packaged: "50%", Zero: "unlimited",
			Help: "Share of one core that the agent may use for all JVMs together. Above its part, it " +
				"compresses a JVM's recording less, then lowers the depth.",
			Wins: "It wins over compression. If it and other limits ask for different depths, the lowest depth " +
				"wins. The unit's CPUQuota wins over it.",
			Reload: AtOnce},
		{Key: "agent_max_memory", Kind: Bytes, Default: "0", Packaged: "1GiB", Zero: "unlimited",
			Help: "Memory that the agent may use, without shared rings; at least 64MiB. Near the limit it starts " +
				"no recording, then it stops the largest one.",
			Wins: "MemoryHigh of the systemd unit overrides it.", Reload: AtOnce},
		{Key: "verdict_interval", Kind: Duration, Default: "0s", Zero: "incidents only",
			Help: "Time between two verdicts on a running recording, 10m to 24h: what leaks is then in status, " +
				"metrics and log before there is an incident.",
			More: "A process of its own reads the recording; it may take 512MiB and a minute of CPU time. On " +
				"average all of them take at most 1 % of a core, so with many JVMs verdicts come later."},
		{Key: "metrics", Kind: Text, Placeholder: "ADDRESS", Packaged: "127.0.0.1:9464", Zero: "none",
			Help: "Address for Prometheus (/metrics) and for health checks (/healthz), such as 127.0.0.1:9464.",
			More: "Everybody who can connect to it sees names of JVMs and sizes, and nothing else."},
		{Key: "socket", Kind: Text, Placeholder: "PATH",
			Help: "Socket of the agent.",
			Zero: "$HEAPCAM_SOCKET, else as root /run/heapcam/agent.sock, else in the user's runtime folder",
			More: "On Windows it is a named pipe, heapcam-agent."},
		{Key: "shm_dir", Kind: Text, Placeholder: "DIR", Default: "/dev/shm",
			Help: "Folder in which the agent creates heapcam-UID, the folder for shared rings. If another user has " +
				"taken that name, root's agent uses /run/heapcam/rings.",
			More: "On Windows the default is the folder for temporary files."},
		{Key: "spool", Kind: Text, Placeholder: "DIR", Zero: "none",
			Help: "Folder for shared rings of JVMs that the agent cannot reach (probe option spool:DIR), and for " +
				"recordings from elsewhere. An absolute path.",
			More: "The agent moves recordings from there to out."},
		{Key: "verbose", Kind: Bool, Default: "false", Help: "Log details on stderr.",
			More: "Without it, `run` and `record` log nothing, and the agent no lines of level DBG."},
	}},
	{"Other hosts", []Def{
		{Key: "remote", Kind: Text, Placeholder: "ADDRESS", Zero: "none",
			Help: "Address for status and pulls from other hosts over HTTPS, such as 0.0.0.0:9465.",
			More: "It needs remote_cert and remote_key, and remote_tokens or remote_client_ca. The packaged " +
				"unit allows only this host's own addresses. To allow others: systemctl edit heapcam, [Service], " +
				"IPAddressAllow=10.0.0.0/8."},
		{Key: "remote_cert", Kind: Text, Placeholder: "FILE", Help: "Certificate of this host for --remote, PEM."},
		{Key: "remote_key", Kind: Text, Placeholder: "FILE", Help: "Private key of --remote-cert, PEM. Only " +
			"its owner may be able to read the file."},
		{Key: "remote_tokens", Kind: Text, Placeholder: "FILE",
			Help: "File of bearer tokens for --remote. Each line is NAME SCOPE[,SCOPE] TOKEN; scopes are status " +
				"and pull. Only its owner may be able to read the file."},
		{Key: "remote_client_ca", Kind: Text, Placeholder: "FILE",
			Help: "CA of client certificates, PEM. Clients with such a certificate may ask for status and pull."},
		{Key: "remote_rate", Kind: Rate, Default: "0", Zero: "unlimited",
			Help: "Bytes per second that all pulls from other hosts together may take."},
		{Key: "upload", Kind: Text, Placeholder: "BUCKET", Zero: "nothing leaves this host",
			Help: "Bucket to which the agent uploads every incident: s3://NAME or s3://NAME/PREFIX.",
			More: "An incident stays on this host, too. The agent uploads each one once, as " +
				"PREFIX/HOST/INCIDENT.heapcam, and tries again until the bucket has it. The packaged unit allows " +
				"only this host's own addresses. To allow others: systemctl edit heapcam, [Service], " +
				"IPAddressAllow=ADDRESS."},
		{Key: "upload_endpoint", Kind: Text, Placeholder: "URL", Zero: "$AWS_ENDPOINT_URL, else Amazon's",
			Help: "Server of the bucket, such as https://minio.example:9000."},
		{Key: "upload_region", Kind: Text, Placeholder: "REGION", Zero: "$AWS_REGION, else us-east-1",
			Help: "Region of the bucket."},
		{Key: "upload_credentials", Kind: Text, Placeholder: "FILE",
			Zero: "$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, else ~/.aws/credentials, else the machine's role",
			Help: "Credentials for the bucket, in the format of ~/.aws/credentials. Only the owner may be able to " +
				"read the file.",
			More: "They need to put, list and read objects, and nothing else."},
		{Key: "upload_rate", Kind: Rate, Default: "0", Zero: "unlimited",
			Help: "Bytes per second that uploads may take."},
		{Key: "upload_redact", Kind: Bool, Default: "false",
			Help: "Leave the names of the host, the threads and the program out of what is uploaded."},
		{Key: "upload_tables", Kind: Duration, Default: "0s", Zero: "no tables",
			Help: "Time between two tables of a JVM that the agent puts into the bucket of upload, 1m to 24h.",
			More: "Tables are Parquet files of sites, stacks, collections and leaks, for SQL over many hosts: " +
				"PREFIX/TABLE/service=SERVICE/date=DATE/."},
		{Key: "profiles_url", Kind: Text, Placeholder: "URL", Zero: "nothing leaves this host",
			Help: "Pyroscope server to which the agent pushes profiles of each JVM's heap, such as " +
				"https://pyroscope.example:4040.",
			More: "A profile has what lives, was allocated, survived and was freed, by class and allocation site. " +
				"See upload for what the packaged unit allows."},
		{Key: "profiles_format", Kind: Choice, Choices: []string{"pyroscope", "otlp"}, Placeholder: "FORMAT",
			Default: "pyroscope",
			Help: "How profiles are pushed: pyroscope, or otlp (experimental: OpenTelemetry's protocol over HTTP, " +
				"as of its version 1.11).",
			More: "Until OpenTelemetry's profiles are stable, a newer server may refuse what this version sends."},
		{Key: "profiles_scrape", Kind: Bool, Default: "false",
			Help: "Serve these profiles at the address of metrics, to whoever can connect to it.",
			More: "/profiles/targets lists the JVMs as Prometheus's HTTP service discovery does."},
		{Key: "profiles_interval", Kind: Duration, Default: "1m",
			Help: "Time between two profiles of a JVM, 10s to 1h.",
			More: "A server adds up the profiles of a step: set its step, or that of a query, to the same time."},
		{Key: "profiles_credentials", Kind: Text, Placeholder: "FILE", Zero: "none are sent",
			Help: "File with USER:PASSWORD or a bearer token for profiles_url. Only the owner may be able to read it.",
			More: "The agent reads it whenever it pushes."},
		{Key: "profiles_tenant", Kind: Text, Placeholder: "TENANT", Zero: "none is sent",
			Help: "Tenant of the server (header X-Scope-OrgID)."},
		{Key: "kubernetes_api", Kind: Bool, Default: "false",
			Help: "Ask the API server of Kubernetes for names, annotations and labels of this node's pods.",
			More: "It needs a service account that may list pods, and the node's name in the variable " +
				"HEAPCAM_NODE_NAME."},
		{Key: "remote_max_pull", Kind: Bytes, Default: "0", Zero: "unlimited",
			Help: "Largest size of one pull from another host. A larger request gets the newest whole files."},
	}},
}
