package serve

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/portable"
)

// schemas are JSON schemas of the columns of a row.
func (m *Model) schemas(of *portable.Prediction) map[string]any {
	all := map[string]any{}
	if d := m.rows(); d != nil {
		for _, name := range d.Columns() {
			all[name] = map[string]any{"type": "number"}
			if levels := d.Levels(name); levels != nil {
				all[name] = map[string]any{"type": "string", "enum": levels}
			}
		}
		for _, name := range d.Outcomes() {
			if of == m.file.Likelihood {
				all[name] = map[string]any{} // a number, or a level
			}
		}
	} else {
		for _, c := range columns(of) {
			kind := map[string]any{"type": "number"}
			for range c.Shape {
				kind = map[string]any{"type": "array", "items": kind}
			}
			all[c.Name] = kind
		}
	}
	return all
}

// describe is an OpenAPI document of /predict, and of /update where there are updates.
func (s *Service) describe(w http.ResponseWriter, _ *http.Request) {
	object := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required}
	}
	list := func(of any) map[string]any { return map[string]any{"type": "array", "items": of} }
	content := func(schema any) map[string]any {
		return map[string]any{"application/json": map[string]any{"schema": schema}}
	}
	post := func(body, answer map[string]any) map[string]any {
		return map[string]any{"post": map[string]any{
			"requestBody": map[string]any{"required": true, "content": content(body)},
			"responses": map[string]any{"200": map[string]any{"description": "the answer", "content": content(answer)},
				"400": map[string]any{"description": "what is wrong with the request"}}}}
	}
	rows := func(of *portable.Prediction) map[string]any {
		columns := s.Model.schemas(of)
		return list(object(columns, slices.Sorted(maps.Keys(columns))...))
	}
	number, text := map[string]any{"type": "number"}, map[string]any{"type": "string"}
	file := &s.Model.file
	sites := list(map[string]any{"type": "string", "enum": file.Predictive.Sites})
	figures := object(map[string]any{"mean": number, "low": number, "high": number}, "mean", "low", "high")
	paths := map[string]any{"/predict": post(
		object(map[string]any{"rows": rows(file.Predictive), "sites": sites, "interval": number}, "rows"),
		object(map[string]any{"predictions": list(map[string]any{"type": "object", "additionalProperties": figures})},
			"predictions"))}
	if s.Online != nil {
		paths["/update"] = post(object(map[string]any{"rows": rows(file.Likelihood), "key": text}, "rows"),
			object(map[string]any{"updates": number, "rows": number, "ess": number}, "updates", "rows", "ess"))
	}
	write(w, map[string]any{"openapi": "3.0.3", "info": map[string]any{"title": "predictions", "version": "1"},
		"paths": paths})
}

// metrics count what a service has done.
type metrics struct {
	requests [6]atomic.Int64 // by the first digit of the status
	rows     atomic.Int64
	buckets  [len(bounds) + 1]atomic.Int64 // of seconds
	nanos    atomic.Int64
}

// bounds are the ends of the buckets of durations, in seconds.
var bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

func (m *metrics) add(status, rows int, took time.Duration) {
	m.requests[status/100].Add(1)
	m.rows.Add(int64(rows))
	m.nanos.Add(int64(took))
	i, _ := slices.BinarySearch(bounds[:], took.Seconds())
	m.buckets[i].Add(1)
}

// write answers with Prometheus's text.
func (m *metrics) write(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("# TYPE kelvin_requests_total counter\n")
	for i := range m.requests {
		if n := m.requests[i].Load(); n > 0 {
			fmt.Fprintf(&b, "kelvin_requests_total{code=\"%dxx\"} %d\n", i, n)
		}
	}
	fmt.Fprintf(&b, "# TYPE kelvin_rows_total counter\nkelvin_rows_total %d\n", m.rows.Load())
	b.WriteString("# TYPE kelvin_request_seconds histogram\n")
	sum := int64(0)
	for i := range m.buckets {
		end := math.Inf(1)
		if i < len(bounds) {
			end = bounds[i]
		}
		sum += m.buckets[i].Load()
		fmt.Fprintf(&b, "kelvin_request_seconds_bucket{le=%q} %d\n", fmt.Sprint(end), sum)
	}
	fmt.Fprintf(&b, "kelvin_request_seconds_sum %g\nkelvin_request_seconds_count %d\n", float64(m.nanos.Load())/1e9, sum)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, b.String())
}
