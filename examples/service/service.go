package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/records"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// service answers requests. The draws and the model are shared by all of them, and never change.
type service struct {
	draws  *draws.Draws
	design *data.Design
	filter *filter
	places chan struct{} // one for each request that may compute
}

func newService(d *draws.Draws, design *data.Design, state string) (*service, error) {
	f, err := newFilter(d, design.Names(), state)
	if err != nil {
		return nil, err
	}
	return &service{draws: d, design: design, filter: f, places: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predict", s.predict)
	mux.HandleFunc("POST /observe", s.observe)
	mux.HandleFunc("POST /online", s.online)
	mux.HandleFunc("GET /healthz", s.health)
	for path, method := range map[string]string{"/predict": "POST", "/observe": "POST", "/online": "POST",
		"/healthz": "GET"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { // of any other method
			w.Header().Set("Allow", method)
			fail(w, http.StatusMethodNotAllowed, fmt.Errorf("method %s: %s takes %s", r.Method, path, method))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fmt.Errorf("path %q: there are /predict, /observe, /online and /healthz", r.URL.Path))
	})
	return mux
}

// prediction is a mean with the interval that has the middle 95 %.
type prediction struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const (
	mostBytes = 1 << 20 // of a request
	mostKey   = 255     // bytes of a key
	block     = 64      // rows between two looks at the context
)

// predict answers {"rows": [...]} with predictions of the draws.
func (s *service) predict(w http.ResponseWriter, r *http.Request) {
	x, ok := s.read(w, r, nil)
	if !ok {
		return
	}
	out := []prediction{}
	for from := 0; from < len(x); from += block {
		some, err := s.evaluate(r.Context(), x[from:min(len(x), from+block)])
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
func (s *service) evaluate(ctx context.Context, x [][]float64) (out []prediction, err error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err = torch.Do(func(*torch.Scope) error {
		at := torch.New(slices.Concat(x...), len(x), len(x[0]))
		values, err := ppl.Predictive{Model: regression, Batch: infer.Batch{"x": at}, Seed: 1,
			Sites: []string{"y"}}.Posterior(s.draws)
		if err != nil {
			return err
		}
		y := torch.Must(torch.ToSlice[float64](values["y"]))
		n := len(x)
		column := make([]float64, len(y)/n)
		for i := range n {
			p := prediction{}
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

// observe answers {"rows": [...], "y": [...]} with the number of updates, when the state is on disk. A request with the
// header Idempotency-Key may be sent again until it is answered: it counts once.
func (s *service) observe(w http.ResponseWriter, r *http.Request) {
	var y []float64
	x, ok := s.read(w, r, &y)
	if !ok {
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if !utf8.ValidString(key) { // JSON would keep another key
		fail(w, http.StatusBadRequest, fmt.Errorf("header Idempotency-Key: got %q, expected UTF-8", key))
		return
	}
	if len(key) > mostKey {
		fail(w, http.StatusBadRequest, fmt.Errorf("header Idempotency-Key: got %d bytes, expected at most %d", len(key),
			mostKey))
		return
	}
	updates, err := s.filter.observe(key, x, y)
	switch {
	case errors.Is(err, errNotFinite):
		fail(w, http.StatusBadRequest, err)
	case errors.Is(err, errOtherData):
		fail(w, http.StatusUnprocessableEntity, fmt.Errorf("header Idempotency-Key, %q: %w", key, err))
	case err != nil:
		fail(w, http.StatusInternalServerError, err)
	default:
		write(w, map[string]any{"updates": updates})
	}
}

// online answers {"rows": [...]} with the filter's predictions.
func (s *service) online(w http.ResponseWriter, r *http.Request) {
	x, ok := s.read(w, r, nil)
	if !ok {
		return
	}
	out, steps := s.filter.predict(x)
	write(w, map[string]any{"predictions": out, "updates": steps})
}

func (s *service) health(w http.ResponseWriter, _ *http.Request) {
	_, steps := s.filter.predict(nil)
	write(w, map[string]any{"draws": s.draws.Total(), "updates": steps})
}

// read decodes a request into the columns of the model, and the outcomes where y is given; where it cannot, it answers
// what is wrong. JSON has no numbers that are not finite.
func (s *service) read(w http.ResponseWriter, r *http.Request, y *[]float64) (x [][]float64, ok bool) {
	var in struct {
		Rows rows       `json:"rows"`
		Y    []*float64 `json:"y"`
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = explained(d.Decode(&in))
	}
	if err == nil {
		err = records.Once(text, body)
	}
	var frame *data.Frame
	if err == nil {
		frame, err = in.Rows.frame(s.design)
	}
	switch {
	case err != nil:
	case y == nil && in.Y != nil:
		err = errors.New("y is given: it is for /observe")
	case y != nil && len(in.Y) != len(in.Rows):
		err = fmt.Errorf("%d rows and %d numbers in y: there must be one for each", len(in.Rows), len(in.Y))
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return nil, false
	}
	if y != nil {
		for i, v := range in.Y {
			if v == nil { // which would count as 0
				fail(w, http.StatusBadRequest, fmt.Errorf(`field "y": element %d is null, expected a number`, i))
				return nil, false
			}
			*y = append(*y, *v)
		}
	}
	return frame.X, true
}

// body is what a request has.
const body = `{"rows": [{"hours": 1, "shop": "north"}]}, and for /observe "y": [3] too`

// explained says of an error of decoding which field it is of, what it got and what was expected.
func explained(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "y":
		return fmt.Errorf(`field "y": got a JSON %s, expected a list of numbers`, wrong.Value)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf(`field %q: got a JSON %s, expected a list of objects, one for each row`, wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("the body: got a JSON %s, expected %s", wrong.Value, body)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax):
		return fmt.Errorf("the body: got what is no JSON (%w), expected %s", err, body)
	case strings.HasPrefix(err.Error(), "json: unknown field "): // it has no type of its own
		return fmt.Errorf("field %s: got an unknown field, expected %s", strings.TrimPrefix(err.Error(),
			"json: unknown field "), body)
	}
	return err
}

func write(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil { // JSON has no infinities
		fail(w, http.StatusBadRequest, errNotFinite)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // a client that has gone
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
