package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
)

// shorthands are the one-letter flags of settings.
var shorthands = map[string]string{"verbose": "v"}

// bind adds the flag of a setting. Help text and default are those of the registry. to receives the value: it is a
// pflag.Value, or a pointer to a type that pflag has a flag for.
func bind(f *pflag.FlagSet, key string, to any) {
	d := config.Lookup(key)
	name, usage := d.Flag(), d.Usage()
	defer inSection(f, sectionOf(key), name)
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

// placeholders stand for the value of a flag in its help, typePlaceholders for the values of a whole type. Flags of
// settings have theirs from the registry.
var placeholders = map[string]string{
	"at": "GC", "by": "LIST", "ca": "FILE", "cert": "FILE", "classifiers": "FILE", "config": "FILE",
	"disabled": "FILE", "find": "REGEXP", "format": "FORMAT", "from": "GC", "incident": "ID", "key": "FILE",
	"list": "PATH", "out": "DIR", "output": "FILE", "reason": "TEXT", "remote": "URL", "since": "GC", "sync": "GC",
	"table": "TABLE", "to": "GC", "token-file": "FILE", "value": "VALUE", "where": "EXPRESSION",
	"class":    "CLASS",
	"site":     "TEXT",
	"object":   "ADDRESS",
	"strength": "STRENGTH",
	"young":    "SIZES", "old": "SIZES", "heap": "SIZES", "collector": "COLLECTOR", "goal": "GOAL",
	"mode": "MODE", "sites": "SOURCE", "drag": "PACKAGES", "marked": "SHARE", "survived": "SHARE",
}

var typePlaceholders = map[string]string{"duration": "DURATION", "int": "N", "uint64": "N", "float64": "FRACTION"}

// named is a flag's value with a placeholder of its own. pflag would use a back-quoted word of the help as the
// placeholder, so the texts contain none.
type named struct {
	pflag.Value
	placeholder string
}

func (n *named) Type() string { return n.placeholder }

// finishFlags gives each flag with a value its placeholder (pflag prints Go's types), and appends the default to its
// help text in the form that the registry uses.
func finishFlags(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		if name := placeholderOf(f); name != "" {
			f.Value = &named{f.Value, name}
		}
		if f.Value.Type() == "bool" {
			return
		}
		silent := []string{"", "0", "0s", "0 B", "0%", "[]"} // the text says what these mean
		if !slices.Contains(silent, f.DefValue) && !strings.Contains(f.Usage, "Default") {
			f.Usage += " Default " + f.DefValue + "."
		}
		f.DefValue = ""
	})
}

// placeholderOf gives the placeholder that replaces the type of Go, "" if the flag has one already.
func placeholderOf(f *pflag.Flag) string {
	typ := f.Value.Type()
	if name := typePlaceholders[typ]; name != "" && (typ != "uint64" || placeholders[f.Name] == "") {
		return name
	}
	if typ == "string" || typ == "stringArray" || typ == "uint64" {
		return placeholders[f.Name]
	}
	return ""
}

var badDuration = regexp.MustCompile(`time: (?:missing unit in|invalid|unknown unit "[^"]*" in) duration ("[^"]*")`)

// badNumber is what Go says of a number in a flag.
var badNumber = regexp.MustCompile(
	`strconv\.Parse(?:Int|Uint|Float): parsing ("[^"]*"): (?:invalid syntax|value out of range)`)

// plainly gives the text of err. It replaces Go's message about a duration or a number by one that a user understands.
func plainly(err error) string {
	text := badDuration.ReplaceAllString(err.Error(), "$1 is not a duration (like 250ms, 90s or 1h30m)")
	return badNumber.ReplaceAllString(text, "$1 is not a number in range")
}

// budget is a share whose default depends on other settings.
type budget struct {
	ui.Percent
	given bool
}

// share gives what the agent calls it: 0 for the default, negative for no limit.
func (b *budget) share() float64 {
	switch {
	case !b.given:
		return 0
	case b.Percent == 0:
		return -1
	}
	return float64(b.Percent)
}

// Set notes that the user gave a value.
func (b *budget) Set(v string) error {
	err := b.Percent.Set(v)
	b.given = b.given || err == nil
	return err
}
