// Package trace is the vocabulary of heapcam: the spec table of blocks and events, their limits, the binary codec and a
// readable text form. Probe, agent, store and readers agree through it alone. It imports nothing of ours. The format is
// docs/format/stream.md; the same numbers for C are in probe/heapcam_abi.h, and a test compares all three.
//
// Terms. A *block* is a framed unit of the stream; its payload is a sequence of *events*, each a tag and the fields of
// one row of the spec table. A *blob* is a field that holds *tokens* (objects of a walk or a list) or *records* (rows
// of deltas). A *word* is 8 bytes; addresses are words from the heap base.
//
// Reading goes in three layers, each with its own errors:
//
//	ReadBlock, Blocks            framing: where a block begins and ends       ErrTorn, *CorruptError
//	DecodeMeta … DecodeEnd       events into structs, every field checked     *TooNewError, *CorruptError
//	WalkTokens, ListTokens       objects, with sizes from a TypeTable         *CorruptError
//
// Invariants:
//
//  1. No function panics or allocates by a number it has not checked against limits.go, whatever the bytes; otherwise a
//     hostile JVM could end the agent. What is decoded is at most a small multiple of the block's own size.
//  2. What an encoder wrote, its decoder gives back equal; otherwise agent and tests would speak a dialect.
//  3. The text form of any payload, readable or not, parses back to bytes that mean the same, and to the same bytes
//     where the payload was written canonically (shortest LEB128); otherwise golden files would prove nothing.
//  4. Token iterators do not allocate; they are the inner loop of replay.
//
// What it does not do: it keeps no state between blocks (heap does), knows no files (ringstore) and no ring (shmring),
// and does not judge whether an epoch is plausible, only whether it can be read.
package trace
