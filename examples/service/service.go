package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// service answers requests. The draws and the model are shared by all of them, and never change.
type service struct {
	draws  *draws.Draws
	filter *filter
	places chan struct{} // one for each request that may compute
}

func newService(d *draws.Draws, state string) (*service, error) {
	f, err := newFilter(d, state)
	if err != nil {
		return nil, err
	}
	return &service{draws: d, filter: f, places: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predict", s.predict)
	mux.HandleFunc("POST /observe", s.observe)
	mux.HandleFunc("GET /online", s.online)
	mux.HandleFunc("GET /healthz", s.health)
	return mux
}

// prediction is a mean with the interval that has the middle 95 %.
type prediction struct {
	X    float64 `json:"x"`
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const (
	mostBytes = 1 << 20 // of a request
	mostX     = 1000    // values in a request
	block     = 64      // values between two looks at the context
)

// predict answers {"x": [...]} with predictions of the draws.
func (s *service) predict(w http.ResponseWriter, r *http.Request) {
	var in struct{ X []float64 }
	if !read(w, r, &in) {
		return
	}
	if len(in.X) == 0 || len(in.X) > mostX {
		fail(w, http.StatusBadRequest, fmt.Errorf("%d values of x: there must be from 1 to %d", len(in.X), mostX))
		return
	}
	out := []prediction{}
	for from := 0; from < len(in.X); from += block {
		some, err := s.evaluate(r.Context(), in.X[from:min(len(in.X), from+block)])
		if r.Context().Err() != nil {
			return // nobody listens any more
		}
		if err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
		out = append(out, some...)
	}
	write(w, map[string]any{"predictions": out})
}

// evaluate waits for a place, or for the end of the request.
func (s *service) evaluate(ctx context.Context, x []float64) (out []prediction, err error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err = torch.Do(func(*torch.Scope) error {
		at, err := torch.FromSlice(x)
		if err != nil {
			return err
		}
		values, err := ppl.Predictive{Model: regression, Batch: infer.Batch{"x": at}, Seed: 1,
			Sites: []string{"y"}}.Posterior(s.draws)
		if err != nil {
			return err
		}
		y, err := torch.ToSlice[float64](values["y"])
		if err != nil {
			return err
		}
		n := len(x)
		column := make([]float64, len(y)/n)
		for i := range n {
			p := prediction{X: x[i]}
			for k := range column {
				column[k] = y[k*n+i]
				p.Mean += column[k] / float64(len(column))
			}
			slices.Sort(column)
			p.Low, p.High = column[len(column)/40], column[len(column)-1-len(column)/40]
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// observe answers {"x": 2, "y": 5.1} with the number of updates, when the state is on disk.
func (s *service) observe(w http.ResponseWriter, r *http.Request) {
	var in struct{ X, Y *float64 }
	if !read(w, r, &in) {
		return
	}
	if in.X == nil || in.Y == nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("x and y must be given"))
		return
	}
	after, err := s.filter.observe(*in.X, *in.Y)
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	write(w, map[string]any{"updates": after.Steps})
}

// online answers with the filter's prediction at ?x=.
func (s *service) online(w http.ResponseWriter, r *http.Request) {
	x, err := strconv.ParseFloat(r.URL.Query().Get("x"), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		fail(w, http.StatusBadRequest, fmt.Errorf("x is %q: it must be a number", r.URL.Query().Get("x")))
		return
	}
	mean, sd, steps := s.filter.predict(x)
	write(w, map[string]any{"prediction": prediction{x, mean, mean - 1.96*sd, mean + 1.96*sd}, "updates": steps})
}

func (s *service) health(w http.ResponseWriter, _ *http.Request) {
	_, _, steps := s.filter.predict(0)
	write(w, map[string]any{"draws": s.draws.Total(), "updates": steps})
}

// read decodes a request; where it cannot, it answers what is wrong. JSON has no numbers that are not finite.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		fail(w, http.StatusBadRequest, err)
		return false
	}
	return true
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
