package graph

// PeakSize predicts how much memory a graph of so many objects and slots needs at the peak, in bytes, from the reading
// of the listing to an answer. It is what was measured with 1.4 and 2.6 slots an object, and a tenth more.
func PeakSize(objects, slots uint64) uint64 {
	const most = 1 << 40 // a recording may claim anything
	return 32<<20 + min(objects, most)*85 + min(slots, most)*10
}

// FileSize predicts how large a room.Room must be for the same: what was freed in it counts, too.
func FileSize(objects, slots uint64) uint64 {
	const most = 1 << 40
	return 16<<20 + min(objects, most)*130 + min(slots, most)*16
}
