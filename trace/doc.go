// Package trace is the vocabulary of heapcam: the spec table of blocks and events, their limits, the binary codec and a readable text
// form. Probe, agent, store and readers agree through it alone. It imports nothing of ours. The format is docs/format/stream.md.
package trace
