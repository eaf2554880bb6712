//go:build !linux

package main

import "errors"

type measurer struct {
	build, machine, file string
	done                 map[string]bool
}

func child(string, []string) int { return 127 }

func (m *measurer) measure(workload, int, string, string, int) error {
	return errors.New("recording needs Linux; -table renders results anywhere")
}
