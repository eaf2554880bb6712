package cost

// Reasons in words, by their numbers in the trace. An entry "" is a number without a meaning.
var (
	syncReasons = [...]string{"", "the first", "a new file begins", "after a full collection",
		"after a collection that ran out of space", "after a missed collection", "after a pause without object data",
		"after lost collections", "for a new recorder", "in a stop without a collection", "in a requested collection",
		"for a greater depth"}
	gapReasons = [...]string{"", "the shared ring was full", "the shared ring broke the protocol", "no recorder ran",
		"the disk failed or was full", "the probe had no room for samples"}
	endReasons = [...]string{"", "the JVM ended", "heapcam was detached", "the probe stopped recording"}
)

// in gives the words for a reason. Readers of newer recordings may meet a number that they do not know.
func in(words []string, reason uint64) string {
	if reason >= uint64(len(words)) || words[reason] == "" {
		return "a reason that this version does not know"
	}
	return words[reason]
}
