package main

import "github.com/spf13/pflag"

// placeholders are what stands for the value of a flag in its help; typePlaceholders serve those whose type says it.
var placeholders = map[string]string{
	"at": "GC", "by": "LIST", "ca": "FILE", "cert": "FILE", "classifiers": "FILE", "compression": "MODE", "config": "FILE", "depth": "DEPTH",
	"disabled": "FILE", "emergency": "MODE", "find": "REGEXP", "format": "FORMAT", "from": "GC", "incident": "ID", "key": "FILE",
	"list": "PATH", "metrics": "ADDRESS", "out": "DIR", "output": "FILE", "reason": "TEXT", "remote": "URL", "remote-cert": "FILE",
	"remote-client-ca": "FILE", "remote-key": "FILE", "remote-tokens": "FILE", "shm-dir": "DIR", "socket": "PATH", "spool": "DIR", "sync": "GC",
	"table": "TABLE", "thread-names": "MODE", "to": "GC", "token-file": "FILE", "value": "VALUE", "where": "EXPRESSION",
}

var typePlaceholders = map[string]string{"duration": "DURATION", "int": "N", "uint64": "N", "float64": "FRACTION"}

// named is a flag's value with a placeholder of its own. pflag would take a back-quoted word of the help for one; the texts have none.
type named struct {
	pflag.Value
	placeholder string
}

func (n *named) Type() string { return n.placeholder }

// namePlaceholders gives every flag with a value its placeholder: pflag prints Go's types.
func namePlaceholders(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		typ := f.Value.Type()
		name := placeholders[f.Name]
		switch {
		case typ == "string" || typ == "stringArray" || typ == "uint64" && name != "":
		case typePlaceholders[typ] != "":
			name = typePlaceholders[typ]
		default:
			return
		}
		switch {
		case name == "":
			return
		case f.Name == "remote" && fs.Lookup("remote-cert") != nil: // the agent's own
			name = "ADDRESS"
		}
		f.Value = &named{f.Value, name}
		if f.DefValue == "0s" || f.DefValue == "0" || f.DefValue == "[]" { // the help says what that means
			f.DefValue = ""
		}
	})
}
