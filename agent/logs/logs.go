package logs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// Message is a line of the log without its details. The variables of this package are all that there are.
type Message struct {
	ID        string // does not change
	Level     zerolog.Level
	Component string
	Text      string
	Cause     string // one or two sentences
	Remedy    string // what to do; "": nothing
}

// Components of messages.
const (
	agent     = "agent"
	discovery = "discovery"
	recorder  = "recorder"
	store     = "store"
	spool     = "spool folder"
	access    = "access"
)

const (
	fail  = zerolog.ErrorLevel
	warn  = zerolog.WarnLevel
	info  = zerolog.InfoLevel
	debug = zerolog.DebugLevel
)

var messages []*Message

// line registers a message.
func line(component, id string, level zerolog.Level, text, cause, remedy string) *Message {
	m := &Message{id, level, component, text, cause, remedy}
	messages = append(messages, m)
	return m
}

// All returns every message, by component, errors first.
func All() []*Message {
	all := slices.Clone(messages)
	slices.SortStableFunc(all, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(b.Level, a.Level), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Write logs m with fields. Unless fields have a remedy, warnings and errors get the message's.
func Write(to *zerolog.Logger, m *Message, fields ...Field) {
	e := to.WithLevel(m.Level)
	if e == nil {
		return
	}
	e = e.Str(idKey, m.ID)
	remedy := m.Level >= warn && m.Remedy != ""
	for _, f := range fields {
		remedy = remedy && f.key != Remedy
		e = f.to(e)
	}
	if remedy {
		e = e.Str(Remedy.Name, m.Remedy)
	}
	e.Msg(m.Text)
}

// With returns a logger that adds fields to each line.
func With(to zerolog.Logger, fields ...Field) zerolog.Logger {
	c := to.With()
	for _, f := range fields {
		c = c.Interface(f.key.Name, f.plain())
	}
	return c.Logger()
}

// to adds the field to a line; an empty text or a nil error is left out.
func (f Field) to(e *zerolog.Event) *zerolog.Event {
	switch v := f.plain().(type) {
	case nil:
		return e
	case string:
		if v == "" {
			return e
		}
		return e.Str(f.key.Name, v)
	case int:
		return e.Int(f.key.Name, v)
	case []string:
		if len(v) == 0 {
			return e
		}
		return e.Strs(f.key.Name, v)
	default:
		return e.Interface(f.key.Name, v)
	}
}

// plain returns the value as a number, a text or a list of texts.
func (f Field) plain() any {
	switch v := f.value.(type) {
	case error:
		return v.Error()
	case time.Duration:
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case fmt.Stringer:
		return v.String()
	}
	return f.value
}
