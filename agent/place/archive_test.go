package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWritesArchive(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := file("args", "-Xmx1g\n  # -Xshare:auto\n\"-XX:ArchiveClassesAtExit=my app.jsa\" -cp app.jar\n")
	vm := file("vm", "-Xmx1g -XX:+AutoCreateSharedArchive\n")
	flags := file("flags", "MaxHeapSize=1000000\n+RecordDynamicDumpInfo\n")
	nested := file("nested", "-XX:VMOptionsFile="+vm)
	self := file("self", "")
	os.WriteFile(self, []byte("@"+self+" @"+dir), 0o600)
	for _, v := range optionVariables {
		t.Setenv(v, "")
	}
	for line, want := range map[string]string{
		"java|-XX:ArchiveClassesAtExit=a.jsa|Main":        "-XX:ArchiveClassesAtExit|the command line",
		"java|-Xshare:dump":                               "-Xshare:dump|the command line",
		"java|-XX:+AutoCreateSharedArchive|-jar|a.jar":    "-XX:+AutoCreateSharedArchive|the command line",
		"nice|java|-XX:+RecordDynamicDumpInfo|Main":       "-XX:+RecordDynamicDumpInfo|the command line",
		"sh|-c|cd x && java -Xshare:dump; ls":             "-Xshare:dump|the command line",
		"jlink|--generate-cds-archive|--output|x":         "--generate-cds-archive|the command line",
		"env|JAVA_TOOL_OPTIONS=-Xshare:dump|java":         "-Xshare:dump|the command line",
		"javac|-J-XX:ArchiveClassesAtExit=a|A.java":       "-XX:ArchiveClassesAtExit|the command line",
		"java|-XX:AOTMode=create|-XX:AOTCache=a":          "-XX:AOTMode|the command line",
		"java|@" + args + "|Main":                         "-XX:ArchiveClassesAtExit|" + args,
		"java|-XX:VMOptionsFile=" + vm + "|Main":          "-XX:+AutoCreateSharedArchive|" + vm,
		"java|-XX:Flags=" + flags + "|Main":               "-XX:+RecordDynamicDumpInfo|" + flags,
		"java|@" + nested + "|Main":                       "-XX:+AutoCreateSharedArchive|" + vm,
		"java|-Xshare:auto|-XX:SharedArchiveFile=a|Main":  "|",
		"java|-XX:AOTCacheOutput=a.aot|Main":              "|", // starts with an agent (25)
		"java|-XX:AOTMode=record|Main":                    "|",
		"java|-XX:-AutoCreateSharedArchive|Main":          "|",
		"java|-XX:DumpLoadedClassList=l|Main":             "|",
		"java|me@example.org|@nowhere|@" + dir + "|@self": "|",
		"java|@" + self:                                   "|", // names itself
		"-Xshare:dump":                                    "|", // a strange name for a command
	} {
		if o, where := WritesArchive(strings.Split(line, "|")); o+"|"+where != want {
			t.Errorf("%s: %q in %q, want %q", line, o, where, want)
		}
	}
	for _, v := range optionVariables {
		t.Setenv(v, "-Xmx1g -XX:ArchiveClassesAtExit=a")
		if o, where := WritesArchive([]string{"java", "Main"}); o == "" || where != v {
			t.Errorf("%s: %q in %q", v, o, where)
		}
		t.Setenv(v, "")
	}
}
