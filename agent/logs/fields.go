package logs

// Key names a detail of a line.
type Key struct{ Name, Meaning string }

// Field is a detail of a line.
type Field struct {
	key   *Key
	value any
}

// Of returns the detail v. Errors, durations, times and fmt.Stringers become texts. Empty texts are left out.
func (k *Key) Of(v any) Field { return Field{k, v} }

// idKey is the key of Message.ID.
const idKey = "id"

var keys []*Key

func key(name, meaning string) *Key {
	k := &Key{name, meaning}
	keys = append(keys, k)
	return k
}

// Keys returns all keys, in the order in which a person wants to read them.
func Keys() []*Key {
	return append(keys[:len(keys):len(keys)], &Key{idKey, "id of the message, which never changes"})
}

// The keys, in the order in which a person wants to read them.
var (
	Recording = key("recording", "ID of the recording: the JVM's name, its pid and its start")
	JVM       = key("jvm", "name of the JVM's program")
	PID       = key("pid", "process ID, as the agent sees it")
	UID       = key("uid", "user ID")
	Err       = key("error", "what failed, as the system or another part of heapcam reported it")
	Cause     = key("cause", "why it happened")
	Path      = key("path", "file or folder that the line is about")
	Target    = key("target", "folder that a file was moved or copied to")

	Audit  = key("audit", "verb that a client used")
	Client = key("client", "who asked: user, token or certificate, and the address")
	Files  = key("files", "number of ring files")

	Depth       = key("depth", "recording depth from now on: samples, survivors or full")
	Interval    = key("interval", "mean number of bytes between two sampled allocations from now on")
	Compression = key("compression", "how much is compressed from now on: as configured, fast or little")
	Setting     = key("setting", "setting whose limit was reached, or that has changed")
	Limit       = key("limit", "the limit: bytes, bytes per second, or CPU cores")
	Pause       = key("pause", "length of a GC pause")

	Bytes       = key("bytes", "size in bytes")
	Before      = key("bytes_before", "size in bytes before the change")
	Needed      = key("bytes_needed", "size in bytes that is needed")
	Deviation   = key("deviation", "share by which the recorded window varies")
	Offset      = key("offset", "position in the shared ring, bytes")
	Collections = key("collections", "number of collections")
	Phase       = key("phase", "how the recording ended: see `phase` of `heapcam status --json`")
	Note        = key("note", "the probe's words")
	Service     = key("service", "namespace, name, version and instance of the service")
	Last        = key("last", "time of the last write")
	Waited      = key("waited", "how long the disk has not answered")
	Recordings  = key("recordings", "number of recordings")
	Profiles    = key("profiles", "number of profiles")
	Lines       = key("lines", "number of lines")
	Span        = key("span", "the time that the line is about")

	Incident = key("incident", "ID of the incident")
	Listed   = key("references", "the incident's reference listing: the collection before it and its objects, or why "+
		"there is none")
	Headline = key("verdict", "the first line of `heapcam leaks`")
	CPU      = key("cpu", "CPU time that it took")
	LeftOut  = key("left_out", "ring files that are not in the incident")
	Replaces = key("replaces", "incidents of the same event that the incident replaces")
	Session  = key("session", "session ID of the file")
	Own      = key("recording_session", "session ID of the recording")

	Descriptor = key("descriptor", "name under which systemd keeps the shared ring")
	Socket     = key("socket", "where the agent listens for `heapcam` commands")
	Rings      = key("rings", "folders in which the agent looks for shared rings")
	Out        = key("out", "folder for recordings")
	Address    = key("address", "host and port")
	Option     = key("option", "option for the java command")

	Remedy = key("remedy", "what to do")
)
