package syncpoint

// Budget bounds what listings that full collections force take, so that a storm of them does not erase its own history.
// It is a bucket that fills with the stream's time: Bytes over Span. While it is empty a listing is kept only every
// k-th time, k doubling from FirstK each time: however long a storm lasts, what it takes beyond the budget is a few
// listings.
type Budget struct {
	Bytes int64  // what may be taken in Span, and the most that is saved up
	Span  uint64 // ns

	left    float64
	at      uint64 // of left
	begun   bool
	k       int // the next listing is kept after so many
	skipped int // since the last one that was kept
}

// FirstK is how many listings are left out before the first one is kept beyond the budget.
const FirstK = 8

// Allow says whether a listing of so many bytes, as stored, is kept; now is the time of the stream, ns.
func (b *Budget) Allow(now uint64, size int64) bool {
	if !b.begun {
		b.begun, b.left, b.at = true, float64(b.Bytes), now
	}
	if now > b.at {
		b.left = min(b.left+float64(b.Bytes)*float64(now-b.at)/float64(b.Span), float64(b.Bytes))
		b.at = now
	}
	if b.left >= float64(b.Bytes) { // it was calm
		b.k = 0
	}
	if b.left >= float64(size) {
		b.left -= float64(size)
		b.skipped = 0
		return true
	}
	if b.k == 0 {
		b.k = FirstK
	}
	if b.skipped++; b.skipped < b.k {
		return false
	}
	b.skipped = 0
	b.k *= 2
	return true
}
