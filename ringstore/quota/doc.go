// Package quota decides how large a ring may be, how large its segments get, and when a new one begins.
//
// Terms: M = max_trace_size, d = max_trace_size_deviation, n = ⌈1/d⌉ segments of target size T = M/n.
//
// Invariants:
//
//  1. What a quota allows never exceeds M(1+d), nor what the disk leaves: keep_free, and what the ring held when the
//     disk said that it was full.
//  2. Beside the open segment there is room for the next head, unless that is more than a quarter of the limit.
//  3. Sync points take at most a quarter of a segment: T grows to four times the last one, up to M/2. Beyond that none
//     is taken (*TooSmallError).
//
// It touches no file: the store passes it what is occupied, and does what it says.
package quota
