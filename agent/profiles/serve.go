package profiles

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// Paths of what a scraper asks for.
const (
	TargetsPath = "/profiles/targets"
	HeapPath    = "/profiles/heap"
)

// target is an entry of Prometheus's HTTP service discovery.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Handler serves the newest profile of each JVM, and the list of them. nil: it is not configured.
func (h *Hub) Handler() http.Handler {
	if !h.cfg.Scrape {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+TargetsPath, h.targets)
	mux.HandleFunc("GET "+HeapPath, h.heap)
	return mux
}

// targets lists the JVMs. Each is at the address that the scraper used, told apart by a parameter.
func (h *Hub) targets(w http.ResponseWriter, r *http.Request) {
	out := []target{}
	for _, e := range h.served() {
		t := target{[]string{r.Host}, map[string]string{"__param_recording": e.recording, "__metrics_path__": HeapPath,
			"__profile_path__": HeapPath}}
		for k, v := range e.labels {
			t.Labels[k] = v
		}
		out = append(out, t)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (h *Hub) heap(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "the query cannot be read", http.StatusBadRequest)
		return
	}
	for _, e := range h.served() {
		if e.recording == q.Get("recording") {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Last-Modified", e.to.UTC().Format(http.TimeFormat))
			_, _ = w.Write(e.body)
			return
		}
	}
	http.Error(w, "no recording of this name has a profile yet; "+TargetsPath+" lists them", http.StatusNotFound)
}
