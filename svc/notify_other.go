//go:build !linux

package svc

func systemd() (*notifier, bool) { return nil, false }

func monotonic() string { return "" }
