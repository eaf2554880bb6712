package sites

import (
	"fmt"
	"strings"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Class names a class as rows are keyed by it: two types are one class if they have the same name and loader. Hidden
// classes of one family share Name and differ in VM.
type Class struct {
	Name   string
	VM     string // the VM's own name, of hidden and generated classes only
	Loader uint64
}

// ClassOf gives the class of a type.
func ClassOf(r *heap.Symbols, typ uint32) Class {
	t, ok := r.Types[uint64(typ)]
	if !ok {
		return Class{Name: r.TypeName(typ)}
	}
	c := Class{Name: t.Pretty(), Loader: t.Loader}
	if t.Flags&trace.TypeHidden != 0 || trace.StripHidden(t.Name) != t.Name { // generated: proxies, accessors
		c.VM = t.Name
	}
	return c
}

// Folded is c as sites and growth count it: the hidden classes of a family are one.
func (c Class) Folded() Class {
	c.VM = ""
	return c
}

// Loaders gives what tells classes of one name apart: for each class whose name more than one loader has, that loader's
// class and number.
func Loaders(r *heap.Symbols, classes []Class) map[Class]string {
	first, shared := map[string]uint64{}, map[string]bool{}
	for _, c := range classes {
		l, ok := first[c.Name]
		if !ok {
			first[c.Name] = c.Loader
		} else if l != c.Loader {
			shared[c.Name] = true
		}
	}
	out := map[Class]string{}
	for _, c := range classes {
		if shared[c.Name] {
			out[c] = fmt.Sprintf("%s #%d", r.Loaders[c.Loader].Name, c.Loader)
		}
	}
	return out
}

func WithLoader(class, loader string) string {
	if loader == "" {
		return class
	}
	return class + " (" + loader + ")"
}

// ClassName is WithLoader as a part of a sentence.
func ClassName(class, loader string) ui.Flow {
	if loader == "" {
		return ui.Flowf("%s", class)
	}
	if i := strings.LastIndex(loader, " #"); i >= 0 { // as Loaders ends it
		return ui.Flowf("%s (%s #%s)", class, loader[:i], loader[i+2:])
	}
	return ui.Flowf("%s (%s)", class, loader)
}
