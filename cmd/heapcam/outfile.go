package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/heapcam/heapcam/internal/ui"
)

// stream opens what -o names if it is no regular file, such as a device, a pipe or a socket: it gets the bytes, and is
// never replaced by a file. nil without an error: it is a file, or will be one.
func stream(name string) (*os.File, error) {
	st, err := os.Stat(name)
	switch {
	case err != nil || st.Mode().IsRegular():
		return nil, nil
	case st.IsDir():
		return nil, usage("-o %s is a folder: name a file in it", name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, cannotCreate(name, err)
	}
	return f, nil
}

// closing ends the writing to what stream gave.
func closing(f *os.File) func(error) error {
	return func(err error) error {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	}
}

// openPart opens the file that takes the bytes until they are complete. It follows no symbolic link.
func openPart(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|flags|noFollow, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("%s is a symbolic link, which heapcam does not follow: remove it", name)
	}
	return f, err
}

// output opens what -o names; "-" is stdout. A file has the name FILE.part until end is called without an error, which
// gives it its own. With an error end removes it.
func output(name string) (w *os.File, end func(error) error, err error) {
	if name == "-" {
		return ui.RawStdout(), func(err error) error { return err }, nil
	}
	f, err := stream(name)
	if err != nil {
		return nil, nil, err
	}
	if f != nil {
		return f, closing(f), nil
	}
	part := name + ".part"
	if f, err = openPart(part, os.O_WRONLY|os.O_TRUNC); err != nil {
		return nil, nil, cannotCreate(name, err)
	}
	return f, func(err error) error {
		if err = closing(f)(err); err == nil {
			return os.Rename(part, name)
		}
		os.Remove(part)
		return err
	}, nil
}
