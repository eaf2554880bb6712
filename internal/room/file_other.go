//go:build !linux

package room

func newMapping(string, int64) (mapping, error) { return nil, ErrUnsupported }
