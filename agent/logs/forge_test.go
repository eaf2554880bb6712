package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestForgedFields: what a JVM calls itself stays the value of its field: it is no line, no field and no id of its own.
func TestForgedFields(t *testing.T) {
	const forged = "x\" id=forged\n" +
		"{\"level\":\"error\",\"id\":\"forged\",\"message\":\"forged\"}\r\x1b[2J\x00\xff\u2028"
	var b bytes.Buffer
	log := With(zerolog.New(&b), Recording.Of(forged))
	m := messages[0]
	var fields []Field
	for _, k := range keys {
		fields = append(fields, k.Of(forged), k.Of(errors.New(forged)), k.Of([]string{forged, forged}))
	}
	Write(&log, m, fields...)
	if n := strings.Count(b.String(), "\n"); n != 1 || !strings.HasSuffix(b.String(), "\n") {
		t.Fatalf("%d lines: %s", n, b.String())
	}
	d := json.NewDecoder(&b)
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if (k == idKey && v != m.ID) || k == "forged" {
			t.Errorf("%v is %v", k, v)
		}
	}
}
