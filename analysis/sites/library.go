package sites

import (
	"os"
	"strings"
	"sync"
)

// libraries are the beginnings of the names of classes that are not the application's: the JDK's, languages', and
// frameworks' that nearly every stack has. A frame of theirs is never the headline of a verdict if there is another.
var libraries = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.", "kotlin.", "groovy.", "clojure.",
	"org.springframework.", "org.apache.", "io.netty.", "org.eclipse.jetty.", "io.undertow.", "reactor.", "rx.",
	"com.google.common.", "com.fasterxml.jackson.", "org.hibernate.", "io.micrometer.", "org.slf4j.", "ch.qos.logback.",
	"io.grpc.", "com.google.protobuf.", "com.github.benmanes.caffeine.", "org.junit.", "io.vertx.", "jakarta."}

// LibraryEnv names packages that are no application's, besides those that are known: beginnings of names of classes,
// with commas between them. A name that begins with "!" is an application's, though a shorter one says otherwise.
const LibraryEnv = "HEAPCAM_LIBRARIES"

var extraLibraries = sync.OnceValue(func() []string {
	return strings.FieldsFunc(os.Getenv(LibraryEnv), func(r rune) bool { return r == ',' || r == ' ' })
})

// Library says whether a class, as a pretty name, belongs to the JDK or to a framework.
func Library(class string) bool { return isLibrary(class, extraLibraries()) }

func isLibrary(class string, extra []string) bool {
	is := false
	for _, p := range extra {
		if own, ok := strings.CutPrefix(p, "!"); ok {
			if strings.HasPrefix(class, own) {
				return false
			}
		} else {
			is = is || strings.HasPrefix(class, p)
		}
	}
	for _, p := range libraries {
		is = is || strings.HasPrefix(class, p)
	}
	return is
}

// Own gives the index of the innermost frame of the application in a stack, that of the innermost one outside the JDK
// if a framework's are all there is, 0 if none is.
func Own(site []StackFrame) int {
	for i, f := range site {
		if !Library(f.Class) {
			return i
		}
	}
	for i, f := range site {
		if !JDK(f.Class) {
			return i
		}
	}
	return 0
}

// JDK says whether a class, as a pretty name, belongs to the JDK.
func JDK(class string) bool {
	for _, p := range libraries[:5] {
		if strings.HasPrefix(class, p) {
			return true
		}
	}
	return false
}
