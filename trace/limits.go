package trace

// Limits of the format, version 1. A reader refuses what is beyond as corrupt before it allocates or indexes by it; a
// writer stays within. Those with a twin in probe/heapcam_abi.h are compared by a test.
const (
	// MaxBlock bounds a block's payload in bytes: the largest shared ring could hold no more.
	MaxBlock = 1 << 30
	// MaxStr bounds a string in bytes: a method's line table of MaxLines rows at a few bytes each is the longest honest
	// one.
	MaxStr = 1 << 20
	// MaxTypeID bounds ids of types: they share an integer with the form bits of a token.
	MaxTypeID = 1<<28 - 1
	// MaxID bounds ids of loaders, methods, frames and threads: readers keep them in 32 bits.
	MaxID = 1<<32 - 1
	// MaxSampleID bounds ids of samples: at a million samples a second it lasts for nine years.
	MaxSampleID = 1<<48 - 1
	// MaxAddr bounds addresses, in words: 2^48 bytes of address space.
	MaxAddr = 1 << 45
	// MaxObject bounds the size of one object whose size is given, in words.
	MaxObject = 1 << 40
	// MaxLength bounds the length of an array: Java's own limit.
	MaxLength = 1<<31 - 1
	// MaxLog2 bounds the logarithm of an array element's size: no element is larger than a long.
	MaxLog2 = 3
	// MaxInstance bounds the size of an instance and of an array's header, in bytes: a class has at most 65535 fields
	// of 8 bytes, inherited ones apart; HotSpot's layout helper leaves room for 2^24 at the outside of anything seen.
	MaxInstance = 1 << 24
	// MaxAlign bounds the alignment of objects, in bytes (ObjectAlignmentInBytes).
	MaxAlign = 256
	// MaxLines bounds the rows of a method's line table: code is at most 65535 bytes long.
	MaxLines = 1 << 16
	// MaxTime bounds times and durations, in nanoseconds (and wall clock milliseconds): they must fit a signed integer.
	MaxTime = 1<<63 - 1
	// MaxBytes bounds counts of bytes: the address space.
	MaxBytes = 1 << 48
	// MaxCount bounds counts of objects, collections, epochs.
	MaxCount = 1 << 48
	// MaxBCI bounds byte code indexes.
	MaxBCI = 1<<16 - 1
	// MaxLine bounds line numbers: 16 bits in a class file, some compilers' synthetic numbers apart.
	MaxLine = 1<<31 - 1
	// MaxRecords bounds the records of one kind in one block (samples, resolved samples, freed ranges, census rows,
	// regions): more than a collection can honestly report, and little enough that a block of rubbish cannot take
	// gigabytes.
	MaxRecords = 1 << 22
	// MaxRefWord bounds addresses of a reference listing, in words: larger heaps have none. Slots and roots have 1
	// more.
	MaxRefWord = 1<<32 - 1
	// MaxRefFields bounds the slots of an instance and the statics of a class: a class file has at most 65535 fields,
	// and so has each class that it extends.
	MaxRefFields = 1 << 24
	// MaxRanges bounds the ranges of one kind that a slice, or an epoch behind a loss, names: a heap of G1 has fewer
	// regions.
	MaxRanges = 1 << 17
)
