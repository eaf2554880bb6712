// Command arrows prints a table of the packages below the current folder: lines and files (tests apart), the widest
// struct, the longest function, and the arrows up inside the package. An arrow is a pair of files of which the one uses
// a name that the other declares at package level, or a method or field of such a type.
//
// The order of the files is the one that a greedy heuristic finds with few arrows up: it puts files that use no other
// file at the bottom and files that no other uses at the top; where a circle leaves neither, the file that is used by
// most more than it uses goes down (Eades, Lin and Smyth 1993). Files of which none needs to look up at another have no
// arrows up; each arrow up is a circle that a reader has to hold in mind as a whole.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	verbose := flag.Bool("v", false, "print the order of the files, bottom first, and the arrows up")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(patterns, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "arrows:", err)
		os.Exit(1)
	}
}

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
	Module                  *struct{ Path string }
}

func run(patterns []string, verbose bool) error {
	c := exec.Command("go", append([]string{"list", "-deps", "-export", "-json"}, patterns...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports, own := map[string]string{}, []listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
	set := token.NewFileSet()
	imp := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	sort.Slice(own, func(i, j int) bool { return own[i].ImportPath < own[j].ImportPath })
	fmt.Println("| package | lines | files | widest struct (fields) | longest function (lines) | arrows | arrows up |")
	fmt.Println("|---|---:|---:|---|---|---:|---:|")
	for _, p := range own {
		if err := describe(set, imp, p, verbose); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return nil
}

// describe prints the row of one package.
func describe(set *token.FileSet, imp types.Importer, p listed, verbose bool) error {
	var files []*ast.File
	lines := 0
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			return err
		}
		files = append(files, f)
		lines += set.File(f.Pos()).LineCount()
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, err := (&types.Config{Importer: imp}).Check(p.ImportPath, set, files, info)
	if err != nil {
		return err
	}
	uses := references(set, pkg, files, info)
	order := arrange(names(p.GoFiles), uses)
	up := upward(order, uses)
	arrows := 0
	for _, to := range uses {
		arrows += len(to)
	}
	name := p.ImportPath
	if p.Module != nil {
		if name = strings.TrimPrefix(name, p.Module.Path+"/"); name == p.Module.Path {
			name = "."
		}
	}
	fmt.Printf("| %s | %d | %d | %s | %s | %d | %d |\n", name, lines, len(files), widest(files), longest(set, files),
		arrows, len(up))
	if verbose {
		fmt.Printf("  order: %s\n", strings.Join(order, " "))
		for _, a := range up {
			fmt.Printf("  up: %s\n", a)
		}
	}
	return nil
}

// references gives the files that each file uses.
func references(set *token.FileSet, pkg *types.Package, files []*ast.File,
	info *types.Info) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range files {
		from := filepath.Base(set.Position(f.Pos()).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := info.Uses[id]
			if o == nil || o.Pkg() != pkg || !declared(o) {
				return true
			}
			if to := filepath.Base(set.Position(o.Pos()).Filename); to != from {
				if out[from] == nil {
					out[from] = map[string]bool{}
				}
				out[from][to] = true
			}
			return true
		})
	}
	return out
}

// declared says whether an object is one of the package's: declared at its level, a method, or a field.
func declared(o types.Object) bool {
	if o.Parent() == o.Pkg().Scope() {
		return true
	}
	switch o := o.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return true
	}
	return false
}

// arrange orders the files, bottom first.
func arrange(files []string, uses map[string]map[string]bool) []string {
	left := map[string]bool{}
	for _, f := range files {
		left[f] = true
	}
	// degree counts the files left that f uses, and those that use it.
	degree := func(f string) (out, in int) {
		for g := range left {
			if uses[f][g] {
				out++
			}
			if uses[g][f] {
				in++
			}
		}
		return out, in
	}
	var bottom, top []string
	for len(left) > 0 {
		pick, isTop, best := "", false, 0
		for _, f := range files {
			if !left[f] {
				continue
			}
			out, in := degree(f)
			if out == 0 {
				pick, isTop = f, false
				break
			}
			if in == 0 && !isTop {
				pick, isTop = f, true
			} else if !isTop && (pick == "" || in-out > best) {
				pick, best = f, in-out
			}
		}
		delete(left, pick)
		if isTop {
			top = append([]string{pick}, top...)
		} else {
			bottom = append(bottom, pick)
		}
	}
	return append(bottom, top...)
}

// upward gives the arrows from a file to one above it.
func upward(order []string, uses map[string]map[string]bool) (out []string) {
	for i, f := range order {
		for _, g := range order[i+1:] {
			if uses[f][g] {
				out = append(out, f+" -> "+g)
			}
		}
	}
	return out
}

// widest names the struct with the most fields.
func widest(files []*ast.File) string {
	name, most := "–", 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				if s, ok := t.Type.(*ast.StructType); ok && s.Fields.NumFields() > most {
					name, most = t.Name.Name, s.Fields.NumFields()
				}
			}
			return true
		})
	}
	return fmt.Sprintf("%s (%d)", name, most)
}

// longest names the function with the most lines between its braces.
func longest(set *token.FileSet, files []*ast.File) string {
	name, most := "–", 0
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				n := set.Position(fn.Body.Rbrace).Line - set.Position(fn.Body.Lbrace).Line - 1
				if n > most {
					name, most = fn.Name.Name, n
				}
			}
		}
	}
	return fmt.Sprintf("%s (%d)", name, most)
}

func names(files []string) []string {
	out := append([]string(nil), files...)
	sort.Strings(out)
	return out
}
