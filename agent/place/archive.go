package place

import (
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// A JVM that writes a CDS archive ends at once if it is started with any native agent, before it calls the agent: the
// probe can do nothing about it. JDK 25 writes caches of -XX:AOTCacheOutput and -XX:AOTMode with an agent; a JVM of
// -XX:AOTMode=create runs no program that could be recorded, and in JDK 24 it is as strict as the others.
var (
	archiveOption = regexp.MustCompile(`(?:^|[\s"'=]|-J)(-Xshare:dump|--generate-cds-archive|-XX:(?:` +
		`ArchiveClassesAtExit=[^\s"']*|` +
		`\+(?:AutoCreateSharedArchive|RecordDynamicDumpInfo|DumpSharedSpaces|DynamicDumpSharedSpaces)|` +
		`AOTMode=create))(?:$|[\s"';&|)])`)
	optionsFile = regexp.MustCompile(`(?:^|[\s"'=]|-J)(?:@|-XX:(VMOptionsFile|Flags)=)([^\s"'@]+)`)
	flagsLine   = regexp.MustCompile(`(?m)^\s*([+-]?\w+)`)
	commentLine = regexp.MustCompile(`(?m)^\s*#.*$`)
)

// optionVariables are the variables of the environment that a JVM, or its launcher, takes options from.
var optionVariables = []string{"JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}

// maxOptionsFile bounds what is read of a file of options; maxOptionsNesting, how deep they may name each other.
const (
	maxOptionsFile    = 1 << 20
	maxOptionsNesting = 3
)

// WritesArchive gives the first option by which a command has a JVM write a CDS archive, and where it is: any
// argument counts, since the command may be a shell that starts the JVM.
func WritesArchive(args []string) (option, where string) {
	for _, a := range args[1:] {
		if o, in := archiveIn(a, "the command line", 0); o != "" {
			return o, in
		}
	}
	for _, v := range optionVariables {
		if o, in := archiveIn(os.Getenv(v), v, 0); o != "" {
			return o, in
		}
	}
	return "", ""
}

func archiveIn(text, where string, nesting int) (option, in string) {
	if m := archiveOption.FindStringSubmatch(text); m != nil {
		option, _, _ = strings.Cut(m[1], "=")
		return option, where
	}
	if nesting == maxOptionsNesting {
		return "", ""
	}
	for _, m := range optionsFile.FindAllStringSubmatch(text, -1) {
		b, ok := optionsOf(m[2])
		if !ok {
			continue // not a file of options, or the JVM complains of it
		}
		text := commentLine.ReplaceAllString(string(b), "")
		if m[1] == "Flags" {
			text = flagsLine.ReplaceAllString(text, "-XX:$1")
		}
		if option, in = archiveIn(text, m[2], nesting+1); option != "" {
			return option, in
		}
	}
	return "", ""
}

// optionsOf reads a file of options. A word that only looks like one can name a fifo or a device.
func optionsOf(path string) ([]byte, bool) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() { // opening a device can act
		return nil, false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxOptionsFile+1))
	return b, err == nil && len(b) <= maxOptionsFile
}
