package trace

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// CleanString makes a string of what a JVM sent: modified UTF-8 (surrogates as two groups of three bytes, NUL as C0 80)
// becomes UTF-8, and what is neither becomes U+FFFD.
func CleanString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			s.WriteRune(r)
			b = b[n:]
			continue
		}
		if len(b) >= 2 && b[0] == 0xC0 && b[1] == 0x80 {
			s.WriteByte(0)
			b = b[2:]
			continue
		}
		hi, lo := surrogate(b), rune(-1)
		if hi >= 0 && len(b) >= 6 {
			lo = surrogate(b[3:])
		}
		if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			s.WriteRune(r)
			b = b[6:]
			continue
		}
		s.WriteRune(utf8.RuneError)
		b = b[1:]
	}
	return s.String()
}

// surrogate gives the UTF-16 surrogate at the start of b, or -1.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return -1
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// primitives are the names of the primitive types by their letter in descriptors.
var primitives = map[byte]string{
	'B': "byte", 'C': "char", 'D': "double", 'F': "float", 'I': "int", 'J': "long", 'S': "short",
	'Z': "boolean", 'V': "void",
}

// PrettyClass gives the name that Class.getTypeName has for a class, from the VM's internal name: java.lang.String for
// java/lang/String, int[] for [I, java.lang.String[][] for [[Ljava/lang/String;. Hidden classes lose what differs from
// run to run (address and counter), so that all lambdas of a class share one stable name: Foo$$Lambda. So do proxies
// and reflection's accessors.
func PrettyClass(internal string) string {
	name := internal
	dims := 0
	for dims < len(name) && name[dims] == '[' {
		dims++
	}
	name = name[dims:]
	if dims > 0 {
		name = element(name)
	}
	name = strings.ReplaceAll(StripHidden(name), "/", ".")
	if dims > 255 { // the JVM's limit; more is no class name, and no reason to build a long string
		return internal
	}
	return name + strings.Repeat("[]", dims)
}

// PrettySignature is PrettyClass for a type signature: Ljava/lang/String; or I as well as [I.
func PrettySignature(sig string) string {
	if strings.HasPrefix(sig, "[") {
		return PrettyClass(sig)
	}
	return PrettyClass(element(sig))
}

// element gives the internal name of what a signature names: I → int, Lfoo/Bar; → foo/Bar.
func element(sig string) string {
	if len(sig) == 1 {
		if p, ok := primitives[sig[0]]; ok {
			return p
		}
	}
	if len(sig) > 2 && sig[0] == 'L' && sig[len(sig)-1] == ';' {
		return sig[1 : len(sig)-1]
	}
	return sig
}

// StripHidden takes from an internal class name what the VM adds to hidden classes: an address after "+", "/" or "."
// and the counter of a lambda (Foo$$Lambda$14+0x0000000800c03000, Foo$$Lambda+0x00007f…). Other names are returned as
// they are.
func StripHidden(name string) string {
	if i := strings.LastIndex(name, "0x"); i > 1 && strings.IndexByte("+/.", name[i-1]) >= 0 &&
		allIn(name[i+2:], "0123456789abcdefABCDEF") {
		name = name[:i-1]
	}
	const lambda = "$$Lambda"
	if i := strings.LastIndex(name, lambda); i >= 0 {
		if rest := name[i+len(lambda):]; len(rest) > 1 && rest[0] == '$' && allIn(rest[1:], "0123456789") {
			name = name[:i+len(lambda)]
		}
	}
	return stripCounter(name)
}

// counted are the beginnings of names that the JDK's generators number as they go.
var counted = [...]string{"$Proxy", "GeneratedMethodAccessor", "GeneratedConstructorAccessor",
	"GeneratedSerializationConstructorAccessor"}

// stripCounter takes the number from the name of a proxy or accessor, and from the package of a proxy's module
// (jdk/proxy2/$Proxy17).
func stripCounter(name string) string {
	const digits = "0123456789"
	simple := strings.LastIndexAny(name, "/.") + 1
	base := strings.TrimRight(name[simple:], digits)
	if base == name[simple:] {
		return name
	}
	for _, c := range counted {
		if base == c {
			pkg := name[:simple]
			if sep := strings.TrimPrefix(pkg, "jdk"); c == "$Proxy" && sep != pkg && len(sep) > 1 {
				if n := strings.TrimPrefix(sep[1:], "proxy"); n != sep[1:] && len(n) > 1 &&
					allIn(n[:len(n)-1], digits) {
					pkg = pkg[:len(pkg)-len(n)] + n[len(n)-1:]
				}
			}
			return pkg + base
		}
	}
	return name
}

func allIn(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }

// Pretty gives the class name as Class.getTypeName does, see PrettyClass.
func (t *Type) Pretty() string { return PrettyClass(t.Name) }

// Pretty gives the method as stack traces write it: java.lang.String.valueOf.
func (m *Method) Pretty() string { return PrettySignature(m.Class) + "." + m.Name }

// Line gives the source line of a byte code index, 0 if the method has no line table or the index is before its first
// row.
func (m *Method) Line(bci int64) int {
	lo, hi := 0, len(m.Lines)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if int64(m.Lines[mid].BCI) <= bci {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0
	}
	return m.Lines[lo-1].Line
}
