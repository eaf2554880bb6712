package web

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
)

// failure is how an error reaches the page. Of an error in a list of classifiers or a filter it says in which field and
// where, from 1.
type failure struct {
	Error  string `json:"error"`
	Field  string `json:"field,omitempty"`
	Spec   string `json:"spec,omitempty"`
	Column int    `json:"column,omitempty"`
}

// badRequest is an error of who asked.
type badRequest struct{ error }

func (e badRequest) Unwrap() error { return e.error }

// reply writes v, or err, as JSON.
func reply(w http.ResponseWriter, v any, err error) {
	code := http.StatusOK
	if err != nil {
		var ref *collection.RefError
		var bad badRequest
		switch {
		case errors.Is(err, collection.ErrNotThere):
			code = http.StatusNotFound
		case errors.As(err, &ref), errors.As(err, &bad):
			code = http.StatusUnprocessableEntity
		default:
			code = http.StatusInternalServerError
		}
		v = fail(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		code, b = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":%q}`, "the answer has no JSON form")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	w.Write(b)
}

func fail(err error) failure {
	f := failure{Error: err.Error()}
	var in inField
	if errors.As(err, &in) {
		f.Field = in.field
	}
	var spec *classify.SpecError
	if errors.As(err, &spec) {
		f.Error, f.Spec, f.Column = spec.Why, spec.Spec, spec.Col
	}
	return f
}

var gzips = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// zipped compresses what h answers, if the asker can unpack it.
func zipped(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Range") // of the packed bytes nobody knows one
		z := gzips.Get().(*gzip.Writer)
		z.Reset(w)
		zw := &zipWriter{ResponseWriter: w, z: z}
		defer func() {
			if zw.packed {
				z.Close()
			}
			gzips.Put(z)
		}()
		h.ServeHTTP(zw, r)
	})
}

type zipWriter struct {
	http.ResponseWriter
	z            *gzip.Writer
	told, packed bool
}

func (w *zipWriter) WriteHeader(code int) {
	if !w.told {
		w.told = true
		if code != http.StatusNoContent && code != http.StatusNotModified {
			w.packed = true
			w.Header().Del("Content-Length")
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Add("Vary", "Accept-Encoding")
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *zipWriter) Write(b []byte) (int, error) {
	if !w.told {
		w.WriteHeader(http.StatusOK)
	}
	if !w.packed {
		return w.ResponseWriter.Write(b)
	}
	return w.z.Write(b)
}
