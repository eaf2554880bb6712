package trace

import "strconv"

// String gives the name of a value, or of its bits joined by "|". What has no name is written as a number.
func (e *Enum) String(v uint64) string {
	if !e.Bits {
		if n, ok := e.Names[v]; ok {
			return n
		}
		return strconv.FormatUint(v, 10)
	}
	if v == 0 {
		return "0"
	}
	s := ""
	for i := 0; i < 64; i++ {
		bit := uint64(1) << i
		if n, ok := e.Names[bit]; ok && v&bit != 0 {
			s += "|" + n
			v &^= bit
		}
	}
	if v != 0 {
		s += "|" + strconv.FormatUint(v, 10)
	}
	return s[1:]
}

// Value is the inverse of String.
func (e *Enum) Value(s string) (uint64, bool) {
	if !e.Bits {
		return e.value(s)
	}
	var v uint64
	for s != "" {
		part := s
		for i := range s {
			if s[i] == '|' {
				part = s[:i]
				break
			}
		}
		x, ok := e.value(part)
		if !ok {
			return 0, false
		}
		v |= x
		if len(part) == len(s) {
			return v, true
		}
		s = s[len(part)+1:]
	}
	return 0, false
}

func (e *Enum) value(s string) (uint64, bool) {
	for v, n := range e.Names {
		if n == s {
			return v, true
		}
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}
