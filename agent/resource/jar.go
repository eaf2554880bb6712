package resource

import "strings"

// jarOf gives the archive that a command line of java runs: behind -jar, else the only one of the class path with
// Spring Boot's loader; "" if there is none.
func jarOf(args []string) string {
	for i := 1; i+1 < len(args); i++ {
		switch a := args[i]; {
		case a == "-jar":
			for _, next := range args[i+1:] { // options may follow
				if !strings.HasPrefix(next, "-") {
					return next
				}
			}
			return ""
		case a == "-cp" || a == "-classpath" || a == "--class-path" || a == "-p" || a == "--module-path":
			i++
			boot := i+1 < len(args) && strings.HasPrefix(args[i+1], "org.springframework.boot.loader.")
			if boot && strings.HasSuffix(args[i], ".jar") && !strings.Contains(args[i], ":") {
				return args[i]
			}
		case !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "@"): // the main class: what follows is its own
			return ""
		}
	}
	return ""
}
