package main

import (
	"path/filepath"
	"testing"
)

// TestFits: what a bucket says is larger than the disk is not written until the disk is full.
func TestFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	if err := fits("s3://b/x", 1<<62, file); err == nil {
		t.Error("4 EiB fit")
	}
	for name, of := range map[string]string{"-": "-", "device": "/dev/null"} {
		if err := fits("s3://b/x", 1<<62, of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fits("s3://b/x", 1, file); err != nil {
		t.Error(err)
	}
}
