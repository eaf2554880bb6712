package site

import "testing"

// TestStackID: a stack has one id, and another stack another one.
func TestStackID(t *testing.T) {
	if a := StackID("A.a(A.java:1)"); len(a) != 16 || a != StackID("A.a(A.java:1)") || a == StackID("A.a(A.java:2)") {
		t.Error(a)
	}
}

// TestID: lines and the numbers of lambdas and accessors do not count, methods and classes do.
func TestID(t *testing.T) {
	at := func(class, method string, line int) []Frame {
		return []Frame{{Class: class, Method: method, File: "A.java", Line: line},
			{Class: "B", Method: "n", Native: true}}
	}
	same := ID("C", at("A", "lambda$main$0", 1))
	for _, x := range [][]Frame{at("A", "lambda$main$7", 1), at("A", "lambda$main$0", 9)} {
		if ID("C", x) != same {
			t.Errorf("%v has another id", x)
		}
	}
	for _, x := range [][]Frame{at("B", "lambda$main$0", 1), at("A", "main", 1), nil} {
		if ID("C", x) == same {
			t.Errorf("%v has the same id", x)
		}
	}
	if got := Join(at("A", "a", 3)); got != "A.a(A.java:3); B.n(native)" {
		t.Error(got)
	}
}
