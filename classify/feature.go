package classify

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxFeatures bounds the rules of a mapping file, and a line of it.
const maxFeatures, maxFeatureLine = 100_000, 4096

// Features maps code to features (ICPE'18 §3.2). A file has a rule a line, "NAME: PATTERN", where PATTERN is a package
// (shop.cart.*), a class (shop.cart.Cart), a method (shop.cart.Cart.add) or lines of a file of a package
// (shop.cart.Cart.java:10-40). One feature may have many rules and one place many features. "#" begins a comment.
type Features struct{ rules []featureRule }

type featureRule struct {
	name, prefix, exact, file, dir string
	from, to                       int
}

// FeatureError says where a mapping file is wrong.
type FeatureError struct {
	File      string
	Line, Col int
	Why       string
}

func (e *FeatureError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Why)
}

// ReadFeatures reads a mapping file; name is for errors, which are *FeatureError.
func ReadFeatures(r io.Reader, name string) (*Features, error) {
	f := &Features{}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, maxFeatureLine), maxFeatureLine)
	n := 0
	for s.Scan() {
		n++
		line := s.Text()
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, pattern, ok := strings.Cut(line, ":")
		key, pattern = strings.TrimSpace(key), strings.TrimSpace(pattern)
		if !ok || key == "" || pattern == "" {
			return nil, &FeatureError{name, n, 1, "a rule is NAME: PATTERN"}
		}
		col := strings.Index(line, pattern) + 1
		if strings.ContainsAny(pattern, " \t") {
			return nil, &FeatureError{name, n, col, "a pattern has no spaces"}
		}
		rule := featureRule{name: key}
		switch file, lines, isLines := strings.Cut(pattern, ":"); {
		case isLines:
			lo, hi, ranged := strings.Cut(lines, "-")
			if !ranged {
				hi = lo
			}
			var err1, err2 error
			rule.from, err1 = strconv.Atoi(lo)
			rule.to, err2 = strconv.Atoi(hi)
			if err1 != nil || err2 != nil || rule.from < 1 || rule.to < rule.from {
				return nil, &FeatureError{name, n, col + len(file) + 1, "lines are N or N-M"}
			}
			i := strings.LastIndexByte(file, '.')
			if i > 0 {
				i = strings.LastIndexByte(file[:i], '.')
			}
			rule.dir, rule.file = file[:max(i, 0)], file[i+1:]
		case strings.HasSuffix(pattern, ".*"):
			rule.prefix = pattern[:len(pattern)-1]
		case strings.Contains(pattern, "*"):
			return nil, &FeatureError{name, n, col + strings.Index(pattern, "*"), "* stands at the end, after a dot"}
		default:
			rule.exact = pattern
		}
		if f.rules = append(f.rules, rule); len(f.rules) > maxFeatures {
			return nil, &FeatureError{name, n, 1, fmt.Sprintf("more than %d rules", maxFeatures)}
		}
	}
	if err := s.Err(); err != nil {
		return nil, &FeatureError{name, n + 1, 1, err.Error()}
	}
	return f, nil
}

// Of gives the features of an allocation site: those that any of its frames belongs to.
func (f *Features) Of(w *World, frame uint64) []string {
	var out []string
	seen := map[string]bool{}
	for at, n := frame, 0; at != 0 && n < maxFrames; n++ {
		fr, ok := w.Frames[at]
		if !ok {
			break
		}
		at = fr.Parent
		m, ok := w.Methods[fr.Method]
		if !ok {
			continue
		}
		method, line := m.Pretty(), m.Line(fr.BCI)
		class := strings.TrimSuffix(method, "."+m.Name)
		for _, r := range f.rules {
			if seen[r.name] {
				continue
			}
			match := false
			switch {
			case r.prefix != "":
				match = strings.HasPrefix(method, r.prefix)
			case r.exact != "":
				match = r.exact == method || r.exact == class || strings.HasPrefix(class, r.exact+"$")
			default:
				d := ""
				if i := strings.LastIndexByte(class, '.'); i > 0 {
					d = class[:i]
				}
				match = m.File == r.file && d == r.dir && line >= r.from && line <= r.to
			}
			if match {
				seen[r.name] = true
				out = append(out, r.name)
			}
		}
	}
	return out
}

func makeFeature(args []string) (Classifier, error) {
	if len(args) != 1 {
		return Classifier{}, fmt.Errorf("it takes the name of a mapping file")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return Classifier{}, err
	}
	defer f.Close()
	fs, err := ReadFeatures(f, args[0])
	if err != nil {
		return Classifier{}, err
	}
	cache := map[uint64][]string{}
	keys := func(w *World, t *Tuple, out []string) ([]string, error) {
		if !t.Sampled {
			return append(out, w.NoSite(t)), nil
		}
		ks, ok := cache[t.Frame]
		if !ok {
			ks = fs.Of(w, t.Frame)
			cache[t.Frame] = ks
		}
		return append(out, ks...), nil
	}
	return Classifier{Cardinality: Many, Needs: AttrSite, Callers: 1, Keys: keys}, nil
}
