package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// aside are files that may write otherwise than through package ui, and why.
var aside = map[string]string{
	"cmd/heapcam/help.go":  "it prints the program's own texts",
	"cmd/heapcam/index.go": "it writes to a hash and to the cache",
	"cmd/heapcam/man.go":   "it writes manual pages, of our own words alone",
}

// around are the ways around package ui: what they write is not escaped, or has a newline that nobody can tell from
// ours.
var around = map[string]bool{
	"fmt.Print": true, "fmt.Printf": true, "fmt.Println": true, "fmt.Fprint": true, "fmt.Fprintf": true,
	"fmt.Fprintln": true, "io.WriteString": true,
	"os.Stdout": true, "os.Stderr": true, "os.Stdin": true, "log.Print": true, "log.Printf": true, "log.Println": true,
	"csv.NewWriter": true, "json.NewEncoder": true,
}

// TestTextGoesThroughUI: names of a recording reach the reader through package ui alone, whose formats are constants:
// so no name can begin a line, move the cursor or become a formula. Package ui says why this is enough.
func TestTextGoesThroughUI(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range []string{"cmd/heapcam", "analysis"} {
		root := filepath.Join("../..", dir)
		set := token.NewFileSet()
		consts, files := map[string]bool{}, map[string]*ast.File{}
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			files[dir+strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(root))] = f
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
					for _, s := range g.Specs {
						for _, n := range s.(*ast.ValueSpec).Names {
							consts[n.Name] = true
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range files {
			if _, ok := aside[name]; ok {
				seen[name] = true
				continue
			}
			for _, why := range bypasses(f, consts) {
				t.Errorf("%s: %s: print through package internal/ui", set.Position(why.at), why.what)
			}
		}
	}
	for name := range aside {
		if !seen[name] {
			t.Errorf("%s is no more: take it off the list", name)
		}
	}
}

type bypass struct {
	at   token.Pos
	what string
}

func bypasses(f *ast.File, consts map[string]bool) (out []bypass) {
	passed := map[ast.Expr]bool{} // formats that a function passes on, of its own parameter
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok && around[p.Name+"."+n.Sel.Name] {
				out = append(out, bypass{n.Pos(), p.Name + "." + n.Sel.Name})
			}
		case *ast.FuncLit:
			forwards(n.Type, n.Body, passed)
		case *ast.FuncDecl:
			forwards(n.Type, n.Body, passed)
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			p, ok := s.X.(*ast.Ident)
			at := map[string]int{"Fprintf": 1, "Sprintf": 0, "Flowf": 0}
			if i, is := at[s.Sel.Name]; ok && p.Name == "ui" && is && !constant(n.Args[i], consts) &&
				!passed[n.Args[i]] {
				out = append(out, bypass{n.Args[i].Pos(), "a format that is no constant"})
			}
		}
		return true
	})
	return out
}

// forwards finds the calls of a function (format string, args ...any) that pass both on, as go vet follows them to
// where the constants are.
func forwards(f *ast.FuncType, body *ast.BlockStmt, passed map[ast.Expr]bool) {
	l := f.Params.List
	if body == nil || len(l) < 2 || len(l[len(l)-2].Names) != 1 {
		return
	}
	if _, ok := l[len(l)-1].Type.(*ast.Ellipsis); !ok {
		return
	}
	format := l[len(l)-2].Names[0].Name
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && c.Ellipsis.IsValid() {
			for _, a := range c.Args {
				if id, ok := a.(*ast.Ident); ok && id.Name == format {
					passed[a] = true
				}
			}
		}
		return true
	})
}

func constant(e ast.Expr, consts map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return constant(e.X, consts) && constant(e.Y, consts)
	case *ast.Ident:
		return consts[e.Name]
	}
	return false
}

// TestBypasses: the rule above finds what it is there to find.
func TestBypasses(t *testing.T) {
	const head = "package x\nfunc f(name string) {\n"
	for text, want := range map[string]int{
		`fmt.Println(name)`: 1, `fmt.Fprintf(ui.Stdout, "%s", name)`: 1, `os.Stdout.WriteString(name)`: 1,
		`io.WriteString(ui.Stdout, name)`: 1, `ui.Fprintf(w, name)`: 1,
		`ui.Sprintf("a" + name)`: 1, `ui.Fprintf(w, "a"+"b%s", name)`: 0, `fmt.Sprintf(name)`: 0,
		`ui.Fprintf(w, good, name)`: 0,
		`say := func(format string, args ...any) { ui.Fprintf(w, format, args...) }`: 0,
		`g := func(format string, args ...any) { ui.Fprintf(w, format) }`:            1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", head+text+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := bypasses(f, map[string]bool{"good": true}); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}
