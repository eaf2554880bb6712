package trace

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestImportsNothingOfOurs: every layer stands on this one; an import of ours here would be a circle in the making.
func TestImportsNothingOfOurs(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range src.Imports {
			path, _ := strconv.Unquote(im.Path.Value)
			if strings.Contains(path, ".") {
				t.Errorf("%s imports %s: the standard library only", f, path)
			}
		}
	}
	if len(files) < 10 {
		t.Errorf("only %d files seen", len(files))
	}
}
