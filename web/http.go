package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzip"

	"github.com/klauspost/compress/gzhttp"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
)

// failure is an error as the page receives it. An error in a list of classifiers or a filter also has the field and the
// column, from 1.
type failure struct {
	Error  string `json:"error"`
	Field  string `json:"field,omitempty"`
	Spec   string `json:"spec,omitempty"`
	Column int    `json:"column,omitempty"`
}

// badRequest is an error that the request caused.
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
		code, b = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":%q}`, "cannot encode the answer as JSON")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b)
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

// zipped compresses the responses of h if the client accepts gzip.
func zipped(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.MinSize(0))
	if err != nil { // cannot happen: the options are constants
		return h
	}
	return wrap(h)
}
