package main

import (
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
)

// shorthands of settings.
var shorthands = map[string]string{"verbose": "v"}

// bind adds the flag of a setting, with help text and default from the registry. to is where its value goes: a
// pflag.Value, or a pointer to what pflag has a flag for.
func bind(f *pflag.FlagSet, key string, to any) {
	d := config.Lookup(key)
	name, usage := d.Flag(), d.Usage()
	switch p := to.(type) {
	case *bool:
		f.BoolVarP(p, name, shorthands[key], d.Default == "true", usage)
		return
	case *string:
		f.StringVar(p, name, "", usage)
	case *int:
		f.IntVar(p, name, 0, usage)
	case *uint64:
		f.Uint64Var(p, name, 0, usage)
	case *float64:
		f.Float64Var(p, name, 0, usage)
	case *time.Duration:
		f.DurationVar(p, name, 0, usage)
	case pflag.Value:
		f.Var(p, name, usage)
	}
	flag := f.Lookup(name)
	if err := flag.Value.Set(d.Default); err != nil {
		panic(fmt.Sprintf("the registry's default of %s: %v", key, err))
	}
	if b, ok := to.(*budget); ok {
		b.given = false
	}
	flag.Value = &named{flag.Value, d.Value()}
	flag.DefValue = "" // the help text says it
}

// placeholders are what stands for the value of a flag in its help; typePlaceholders serve those whose type says it.
// Flags of settings have theirs from the registry.
var placeholders = map[string]string{
	"at": "GC", "by": "LIST", "ca": "FILE", "cert": "FILE", "classifiers": "FILE", "config": "FILE",
	"disabled": "FILE", "find": "REGEXP", "format": "FORMAT", "from": "GC", "incident": "ID", "key": "FILE",
	"list": "PATH", "out": "DIR", "output": "FILE", "reason": "TEXT", "remote": "URL", "sync": "GC",
	"table": "TABLE", "to": "GC", "token-file": "FILE", "value": "VALUE", "where": "EXPRESSION",
}

var typePlaceholders = map[string]string{"duration": "DURATION", "int": "N", "uint64": "N", "float64": "FRACTION"}

// named is a flag's value with a placeholder of its own. pflag would take a back-quoted word of the help for one;
// the texts have none.
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
		if name == "" {
			return
		}
		f.Value = &named{f.Value, name}
		if f.DefValue == "0s" || f.DefValue == "0" || f.DefValue == "[]" { // the help says what that means
			f.DefValue = ""
		}
	})
}

var badDuration = regexp.MustCompile(`time: (?:missing unit in|invalid|unknown unit "[^"]*" in) duration ("[^"]*")`)

// plainly is what err says, of durations in words for who does not know Go.
func plainly(err error) string {
	return badDuration.ReplaceAllString(err.Error(), "$1 is not a duration (like 250ms, 90s or 1h30m)")
}

// budget is a share that may be left to a default that depends on other settings.
type budget struct {
	ui.Percent
	given bool
}

// Set notes that there is a value.
func (b *budget) Set(v string) error {
	err := b.Percent.Set(v)
	b.given = b.given || err == nil
	return err
}
