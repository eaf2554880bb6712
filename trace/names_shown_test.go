package trace

import "testing"

func TestPrettyClass(t *testing.T) {
	for in, want := range map[string]string{
		"java/lang/String":                         "java.lang.String",
		"[I":                                       "int[]",
		"[[Ljava/lang/String;":                     "java.lang.String[][]",
		"I":                                        "I", // a class of the default package
		"Foo$$Lambda+0x00007f8a1c000a18":           "Foo$$Lambda",
		"a/Foo$$Lambda$14+0x0000000800c03000":      "a.Foo$$Lambda",
		"a/Foo$$Lambda$14/0x0000000800c03000":      "a.Foo$$Lambda",
		"[La/Foo$$Lambda$14+0x0000000800c03000;":   "a.Foo$$Lambda[]",
		"java/lang/invoke/LambdaForm$MH+0x00007f8": "java.lang.invoke.LambdaForm$MH",
		"jdk/proxy2/$Proxy17":                      "jdk.proxy.$Proxy",
		"$Proxy3":                                  "$Proxy",
		"com/sun/proxy/$Proxy3":                    "com.sun.proxy.$Proxy",
		"a/jdk/proxy2/$Proxy3":                     "a.jdk.proxy2.$Proxy",
		"jdk/internal/reflect/GeneratedMethodAccessor12":     "jdk.internal.reflect.GeneratedMethodAccessor",
		"jdk/internal/reflect/GeneratedConstructorAccessor1": "jdk.internal.reflect.GeneratedConstructorAccessor",
		"a/My$Proxy7": "a.My$Proxy7", "a/Version2": "a.Version2",
		"a/B$1": "a.B$1", "a/Foo+0xzz": "a.Foo+0xzz", "": "", "[": "[]", "0x1": "0x1",
	} {
		if got := PrettyClass(in); got != want {
			t.Errorf("PrettyClass(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"Ljava/lang/String;": "java.lang.String", "J": "long", "[J": "long[]",
		"LFoo$$Lambda.0x0000780001;": "Foo$$Lambda"} {
		if got := PrettySignature(in); got != want {
			t.Errorf("PrettySignature(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanString(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "ä": "ä", "a\xc0\x80b": "a\x00b", "\xed\xa0\xbd\xed\xb8\x80": "😀", "\xff": "\uFFFD",
		"\xed\xa0\xbdx": "\uFFFD\uFFFD\uFFFDx",
	} {
		if got := CleanString([]byte(in)); got != want {
			t.Errorf("CleanString(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	m := Method{Lines: []LineEntry{{2, 10}, {5, 11}, {5, 12}, {9, 8}}}
	for bci, want := range map[int64]int{-1: 0, 0: 0, 2: 10, 4: 10, 5: 12, 8: 12, 9: 8, 1000: 8} {
		if got := m.Line(bci); got != want {
			t.Errorf("Line(%d) = %d, want %d", bci, got, want)
		}
	}
}
