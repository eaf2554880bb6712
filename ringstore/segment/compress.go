package segment

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/heapcam/heapcam/trace/columns"
)

// Modes of compression (Config.Compression). The codec is in each frame, so files of all modes read alike.
const (
	// None compresses nothing.
	None = "none"
	// Partial compresses a frame only while the queue is at least Config.Threshold full (ICPE'16 §4.1).
	Partial = "partial"
	// Full compresses every frame as well as is reasonable.
	Full = "full"
	// Adaptive compresses as Full does, and less the fuller the queue is and the more of its CPU budget is spent: the
	// newest data is never lost for a better ratio.
	Adaptive = "adaptive"
)

// effort is how much is done to a frame.
type effort int

const (
	effortNone effort = iota
	effortS2          // about a third of the time of effortFast
	effortFast        // columns, then zstd at its fastest
	effortBest        // columns, then zstd at a better level
)

// Thresholds of Adaptive, share of the queue that is full: at and above them the effort is less.
const (
	queueFast = 0.25
	queueS2   = 0.5
	queueNone = 0.8
)

// budgetSpan is over what time the CPU budget is averaged.
const budgetSpan = 10 * time.Second

// KeepBuffer bounds the buffers that are kept: a rare large sync point must not hold its memory for ever.
const KeepBuffer = 16 << 20

// Packer makes frames of payloads and decides how much is done to compress them.
//
// Owner: a store or a stream. Lifetime: that of its owner; there is nothing to close. Concurrency: one goroutine; the
// encoders behind it are shared by all packers of the process.
// Errors: none; what cannot be compressed is stored as it is.
type Packer struct {
	mode      string
	threshold float64
	budget    float64 // CPUs
	queue     float64 // share that is full, as last reported
	most      effort  // whatever the mode
	packed    uint64  // bytes of payload so far

	spent float64 // CPU time of late, ns, fading over budgetSpan
	last  time.Time

	cols     columns.Encoder
	col, zip []byte
	one, out [1][]byte
}

func NewPacker(mode string, threshold, budget float64) (*Packer, error) {
	switch mode {
	case None, Partial, Full, Adaptive:
		return &Packer{mode: mode, threshold: threshold, budget: budget, most: effortBest}, nil
	}
	return nil, fmt.Errorf("compression %q is unknown: none, partial, full or adaptive", mode)
}

// SetQueue sets how full the queue is, 0 to 1.
func (p *Packer) SetQueue(full float64) { p.queue = full }

// SetBudget sets what Adaptive may spend, CPUs on average.
func (p *Packer) SetBudget(cpus float64) { p.budget = cpus }

// Ease sets how much less than configured is done, whatever the mode: 0, 1 (fast) or 2 (little).
func (p *Packer) Ease(n int) { p.most = effortBest - effort(min(max(n, 0), int(effortBest-effortS2))) }

func (p *Packer) effort() effort { return min(p.wanted(), p.most) }

func (p *Packer) wanted() effort {
	switch p.mode {
	case None:
		return effortNone
	case Partial:
		if p.queue < p.threshold {
			return effortNone
		}
		return effortFast
	case Full:
		return effortBest
	}
	e := effortBest
	if p.packed < firstFast {
		e = effortFast
	}
	switch {
	case p.queue >= queueNone:
		e = effortNone
	case p.queue >= queueS2:
		e = effortS2
	case p.queue >= queueFast:
		e = min(e, effortFast)
	}
	switch share := p.spent / float64(budgetSpan); {
	case share > 1.5*p.budget: // not less: S2 costs little more than to write what it saves
		e = min(e, effortS2)
	case share > p.budget:
		e = min(e, effortFast)
	}
	return e
}

// charge takes note of what packing took. Time stands for CPU: it is one goroutine that does nothing else but wait
// for an encoder at times.
func (p *Packer) charge(from, to time.Time) {
	if idle := from.Sub(p.last); !p.last.IsZero() && idle > 0 {
		p.spent *= max(0, 1-float64(idle)/float64(budgetSpan))
	}
	took := float64(to.Sub(from))
	p.spent = p.spent*max(0, 1-took/float64(budgetSpan)) + took
	p.last = to
}

// fast and best are the zstd encoders of the two efforts, which all stores of a process share: each holds some 6 MB
// for every CPU that compresses at a time, and nothing of what it encoded. A store waits while all are busy.
var (
	fast = sync.OnceValues(func() (*zstd.Encoder, error) { return newEncoder(zstd.SpeedFastest) })
	best = sync.OnceValues(func() (*zstd.Encoder, error) { return newEncoder(zstd.SpeedBetterCompression) })
)

// maxEncoders bounds how many stores compress at a time, whatever the number of CPUs, and with it the memory.
const maxEncoders = 4

func newEncoder(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderConcurrency(min(runtime.GOMAXPROCS(0), maxEncoders)))
}

// firstFast is how much Adaptive packs fast before it makes the tables of the better level: they cost a JVM that runs
// for a second more than all of the rest of packing.
const firstFast = 1 << 20

// smallFrame is the size, bytes, below which the better level gains little: its tables are 10 MB, and most of the time
// of a small frame would go into their memory.
const smallFrame = 32 << 10

func (e effort) encoder() (*zstd.Encoder, error) {
	if e == effortBest {
		return best()
	}
	return fast()
}

// zstdWindow is as far as matches reach. With 4 MiB the recordings of bench/compression have the same size to 0.1 %,
// and each encoder takes 3 MiB more.
const zstdWindow = 1 << 20

// Frame appends payload as a frame to dst.
func (p *Packer) Frame(dst, payload []byte, info FrameInfo) []byte {
	p.one[0] = payload
	dst, stored := p.Pack(dst, p.one[:], info)
	for _, part := range stored {
		dst = append(dst, part...)
	}
	p.one[0] = nil
	return dst
}

// Pack appends the header of a frame to dst and gives what follows it in the file, which is good until the next call.
// The payload is parts, each of whole blocks, one behind the other: not compressed, they are what is stored, and are
// read for their checksum alone.
func (p *Packer) Pack(dst []byte, parts [][]byte, info FrameInfo) (head []byte, stored [][]byte) {
	f := Frame{FrameInfo: info}
	for _, part := range parts {
		f.Raw += uint32(len(part))
	}
	stored = parts
	e := p.effort()
	p.packed += uint64(f.Raw)
	if e > effortNone {
		from := time.Now()
		codec, packed := p.pack(e, parts, int(f.Raw))
		p.charge(from, time.Now())
		if codec != codecNone && len(packed) < int(f.Raw) {
			f.Codec, p.out[0] = codec, packed
			stored = p.out[:]
		}
	}
	head = encodeFrame(dst, f, stored)
	if cap(p.zip) > KeepBuffer {
		p.zip = nil
	}
	if cap(p.col) > KeepBuffer {
		p.col = nil
	}
	return head, stored
}

// pack gives codecNone where nothing can be gained.
func (p *Packer) pack(e effort, parts [][]byte, raw int) (codec uint8, stored []byte) {
	if e == effortS2 {
		payload := p.join(parts, raw)
		p.zip = s2.Encode(p.zip[:cap(p.zip)], payload)
		if plausible(raw, len(p.zip)) {
			return codecS2, p.zip
		}
		e = effortFast
	}
	if raw < smallFrame {
		e = min(e, effortFast)
	}
	z, err := e.encoder()
	quick, err2 := fast()
	if err != nil || err2 != nil { // options that are constants
		return codecNone, nil
	}
	p.col = p.cols.Encode(p.col[:0], parts...)
	p.zip = p.zip[:0]
	from, enc := 0, z
	for _, cut := range p.cols.Cuts() {
		p.zip = enc.EncodeAll(p.col[from:cut.At], p.zip)
		if from, enc = cut.At, z; cut.Plain {
			enc = quick
		}
	}
	p.zip = enc.EncodeAll(p.col[from:], p.zip)
	return codecColumns, p.zip
}

// join gives parts as one.
func (p *Packer) join(parts [][]byte, raw int) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	p.col = slices.Grow(p.col[:0], raw)
	for _, part := range parts {
		p.col = append(p.col, part...)
	}
	return p.col
}
