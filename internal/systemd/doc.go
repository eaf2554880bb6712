// Package systemd tests the packages and the service in a systemd that it boots for itself: installing, recording JVMs
// of several users, being killed, hanging, being removed and purged. It needs root, systemd-nspawn and setfattr, and
// is skipped without. It has no code of its own.
package systemd
