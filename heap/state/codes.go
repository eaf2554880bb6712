package state

// codes numbers the distinct pairs of type and length: a code says all that objects of one kind share, and the columns
// of the state hold codes. Most lookups are of instances, whose length is 0: they index a table by type.
type Codes struct {
	Type   []uint32
	Length []uint64
	Words  []uint64
	Count  []uint64 // objects of the state

	inst  []uint32 // code + 1 by type, of length 0
	slots []uint32 // code + 1, open addressing, of the others
	used  int

	limit int // below so many no one looks whether they are in use
}

// minCodes is how many codes are kept whether they are in use or not.
const minCodes = 4096

// DenseTypes bounds the ids that are looked up in a slice: no probe gives larger ones, and a token of four bytes must
// not take gigabytes.
const DenseTypes = 1 << 22

func hash(typ uint32, length uint64) uint64 {
	h := (length<<28 ^ uint64(typ)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// of gives the code of a type and length; words is their size. The first size that was given stays.
func (c *Codes) Of(typ uint32, length, words uint64) uint32 {
	if length == 0 && typ < DenseTypes {
		if uint64(typ) < uint64(len(c.inst)) {
			if i := c.inst[typ]; i != 0 {
				return i - 1
			}
		} else {
			c.inst = append(c.inst, make([]uint32, int(typ)+1-len(c.inst))...)
		}
		i := c.add(typ, length, words)
		c.inst[typ] = i + 1
		return i
	}
	if 4*c.used >= 3*len(c.slots) {
		c.grow()
	}
	mask := uint64(len(c.slots) - 1)
	for h := hash(typ, length) & mask; ; h = (h + 1) & mask {
		i := c.slots[h]
		if i == 0 {
			i = c.add(typ, length, words)
			c.slots[h] = i + 1
			c.used++
			return i
		}
		if i--; c.Type[i] == typ && c.Length[i] == length {
			return i
		}
	}
}

func (c *Codes) add(typ uint32, length, words uint64) uint32 {
	c.Type, c.Length, c.Words, c.Count = append(c.Type, typ), append(c.Length, length), append(c.Words, words),
		append(c.Count, 0)
	return uint32(len(c.Type) - 1)
}

func (c *Codes) grow() {
	old := c.slots
	c.slots = make([]uint32, max(64, 2*len(old)))
	mask := uint64(len(c.slots) - 1)
	for _, i := range old {
		if i == 0 {
			continue
		}
		h := hash(c.Type[i-1], c.Length[i-1]) & mask
		for c.slots[h] != 0 {
			h = (h + 1) & mask
		}
		c.slots[h] = i
	}
}

// trimmed gives a dictionary of the codes that are in use and what each old code has become; nil if few are out of use.
func (c *Codes) trimmed() (*Codes, []uint32) {
	live := 0
	for _, n := range c.Count {
		if n > 0 {
			live++
		}
	}
	c.limit = max(minCodes, 2*len(c.Type))
	if len(c.Type) < minCodes || 2*live > len(c.Type) {
		return nil, nil
	}
	next := &Codes{limit: max(minCodes, 4*live)}
	to := make([]uint32, len(c.Type))
	for i, n := range c.Count {
		if n > 0 {
			to[i] = next.Of(c.Type[i], c.Length[i], c.Words[i])
			next.Count[to[i]] = n
		}
	}
	return next, to
}
