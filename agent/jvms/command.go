package jvms

import (
	"path"
	"slices"
	"strings"
)

// withValue are the options of the java launcher whose value is the next argument.
var withValue = []string{
	"-cp", "-classpath", "--class-path", // a class path: first, see Program
	"-p", "--module-path", "--upgrade-module-path", "--add-modules", "--limit-modules", "--add-reads", "--add-exports",
	"--add-opens", "--patch-module", "--source", "--enable-native-access", "--illegal-native-access", "-d",
	"--describe-module",
}

// springLoader begins the names of the classes that start the program inside of a Spring Boot archive.
const springLoader = "org.springframework.boot.loader."

// Program gives what the arguments of a JVM's process run: the main class, the file name of the jar, or the name of a
// tool of the JDK like javac; and the options of the JVM among them. sure is false where the arguments do not say it
// for certain, so that the JVM's own word (PerfData) is better: an @file stands before the main class, or the program
// has the JVM inside.
//
// An @file is not read: its name is the word of the JVM's user, and what stands in it would be shown.
func Program(args []string) (name string, options []string, sure bool) {
	if len(args) == 0 || args[0] == "" {
		return "", nil, false
	}
	// Another program has other arguments than java. Tools of the JDK take options behind -J, jsvc as they are.
	if program := strings.TrimSuffix(path.Base(args[0]), ".exe"); !isLauncher(program) {
		for _, a := range args[1:] {
			if o, ok := strings.CutPrefix(a, "-J"); ok || strings.HasPrefix(a, "-X") {
				options = append(options, o)
			}
		}
		return program, options, false
	}
	jar, classPath, sure := false, "", true
	for i := 1; i < len(args); i++ {
		a := args[i]
		value, joined := "", false
		if strings.HasPrefix(a, "--") {
			_, value, joined = strings.Cut(a, "=")
		}
		switch {
		case a == "-jar":
			jar = true
		case a == "-m" || a == "--module":
			if i+1 < len(args) {
				return commandName(args[i+1]), options, sure
			}
		case joined && strings.HasPrefix(a, "--module="):
			return commandName(value), options, sure
		case slices.Contains(withValue, a):
			i++
			if i < len(args) && slices.Contains(withValue[:3], a) {
				classPath = args[i]
			}
		case joined && strings.HasPrefix(a, "--class-path="):
			classPath = value
		case strings.HasPrefix(a, "@"):
			sure = false
		case strings.HasPrefix(a, "-"):
			options = append(options, a)
		case !sure: // the main class may stand in the @file, and this be one of the program's own arguments
			return "", options, false
		case jar:
			return path.Base(a), options, true
		case strings.HasPrefix(a, springLoader):
			return springName(a, classPath, options), options, true
		case strings.HasSuffix(a, ".java"):
			return path.Base(a), options, true
		default:
			return commandName(a), options, true
		}
	}
	return "", options, false
}

// isLauncher tells java, javaw and java-17 from javac and javadoc.
func isLauncher(program string) bool {
	rest, ok := strings.CutPrefix(program, "java")
	return ok && (rest == "" || rest == "w" || rest[0] < 'a' || rest[0] > 'z')
}

// springName names what a class of Spring Boot's loader starts, as far as the command line says it: all programs
// share that class.
func springName(class, classPath string, options []string) string {
	for _, o := range options {
		if main, ok := strings.CutPrefix(o, "-Dloader.main="); ok && main != "" {
			return main
		}
	}
	first, _, _ := strings.Cut(classPath, ":")
	if b := path.Base(first); strings.HasSuffix(b, ".jar") || strings.HasSuffix(b, ".war") {
		return b
	}
	return class
}

// commandName gives the main class or jar of sun.rt.javaCommand, whose rest are the program's arguments: not for
// other eyes.
func commandName(cmd string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(cmd), " ")
	if first == "" {
		return ""
	}
	module, class, inModule := strings.Cut(first, "/")
	const sourceLauncher = "com.sun.tools.javac.launcher." // of java X.java
	if inModule && module == "jdk.compiler" && strings.HasPrefix(class, sourceLauncher) {
		source, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if strings.HasSuffix(source, ".java") {
			return path.Base(source)
		}
	}
	ofJDK := strings.HasPrefix(module, "jdk.") || strings.HasPrefix(module, "java.")
	if inModule && ofJDK || class == "" && isTool(first) {
		return toolName(first[strings.LastIndexByte(first, '/')+1:])
	}
	return path.Base(first)
}

// isTool says that a class that was started without its module is a tool of the JDK.
func isTool(class string) bool {
	ofTools := strings.HasPrefix(class, "com.sun.tools.") || strings.HasPrefix(class, "sun.tools.")
	return ofTools && strings.HasSuffix(class, ".Main")
}

// toolClasses are main classes that do not stand in a package of their tool's name.
var toolClasses = map[string]string{
	"SALauncher": "jhsdb", "JWebServer": "jwebserver", "RegistryImpl": "rmiregistry", "TTY": "jdb",
}

// toolName gives the name by which a user starts a tool of the JDK: com.sun.tools.javac.Main is javac.
func toolName(class string) string {
	parts := strings.Split(class, ".")
	last := len(parts) - 1
	if n := toolClasses[parts[last]]; n != "" {
		return n
	}
	for i := last - 1; i > 0; i-- {
		if p := parts[i]; p != "internal" && p != "tool" && p != "main" {
			return p
		}
	}
	return class
}

// ShortName gives the last part of a JVM's name: Main of org.example.Main, app of app.jar.
func ShortName(name string) string {
	if name == "" {
		return ""
	}
	name = path.Base(name)
	for _, suffix := range []string{".jar", ".war", ".java"} {
		if s, ok := strings.CutSuffix(name, suffix); ok && s != "" {
			return s
		}
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}
