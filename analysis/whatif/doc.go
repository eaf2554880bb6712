// Package whatif predicts what the collections of a recorded program would be with another heap: after ICPE'14, "On the
// Limits of Modeling Generational Garbage Collector Performance".
//
// Terms. An *input* is the objects that a program allocates, with births and deaths in virtual time (words allocated);
// it is made from the lifetimes of a recording. A *configuration* is a heap of fixed sizes. The *simulator* runs an
// input through a configuration by the rules of Serial or Parallel, and knows no time; the *pause model*, fitted on the
// recording's own pauses, and the recording's speed of allocation give times. A *prediction* holds an interval: over
// the deaths that the recording leaves open, and over seeds.
//
// Invariants: the simulator loses no bytes (what lives is in one space, once); the same input, configuration and seed
// give the same outcome. This package does not read recordings.
package whatif
