package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/records"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// Service puts the predictions of a model, at the draws that were exported with it, behind HTTP. Its handlers are
//
//	POST /predict       {"rows": [{"column": 1, ...}], "sites": ["y"], "interval": 0.9} gives {"predictions": [{"y":
//	                    {"mean": 1, "low": 0, "high": 2}}]}, one for each row; sites and interval may be left out
//	POST /update        with Online alone: {"rows": [{"column": 1, "outcome": 2}], "key": "a name of these rows"} gives
//	                    {"updates": 1, "rows": 1, "ess": 3720.5}. Rows with a key that was there are not counted again
//	GET  /healthz       how many draws there are, and updates
//	GET  /readyz        503 while the service drains
//	GET  /metrics       of requests and rows, in Prometheus's text
//	GET  /openapi.json  what a request has
//
// Predictions of one request have the random streams of Seed: the same request has the same answer. The zero value of
// a limit is its default.
type Service struct {
	Model   *Model        // with draws, and predictions
	Bytes   int64         // of a request at most; default 1 MiB
	Rows    int           // of a request at most; default 1000, and never more than 2^24 predictions
	Timeout time.Duration // of a request; default 10 s
	Seed    uint64        // of the random streams
	Log     *slog.Logger  // of requests that fail; default none
	Online  *Online       // of Model; predictions are of its posterior, and /update takes rows. Default none

	once     sync.Once
	places   chan struct{} // one for each request that computes
	updating chan struct{} // and one for an update
	draining atomic.Bool
	metrics  metrics
	columns  sync.Pool
	seen     atomic.Pointer[view]
}

// view is a posterior as predictions read it.
type view struct {
	of    *cloud // of Online
	draws *draws.Draws
	given func(k int, to []float64)
	sized sync.Map // predictors that keep what they make of the draws, by number of rows
}

// view is that of the posterior so far.
func (s *Service) view() (*view, error) {
	v := &view{draws: s.Model.file.Draws}
	if s.Online != nil {
		v.of = s.Online.now.Load()
	}
	if seen := s.seen.Load(); seen != nil && seen.of == v.of {
		return seen, nil
	}
	var err error
	if s.Online != nil {
		if v.draws, err = s.Online.posterior(v.of); err != nil {
			return nil, err
		}
	}
	if v.given, err = s.Model.givenBy(v.draws); err == nil {
		s.seen.Store(v)
	}
	return v, err
}

// defaultInterval is what the intervals of predictions have.
const defaultInterval = 0.95

// mostNumbers are how many predictions a request may have, of all draws.
const mostNumbers = 1 << 24

func (s *Service) start() {
	s.once.Do(func() {
		s.Bytes, s.Rows, s.Timeout = cmp.Or(s.Bytes, 1<<20), cmp.Or(s.Rows, 1000), cmp.Or(s.Timeout, 10*time.Second)
		if s.Log == nil {
			s.Log = slog.New(slog.DiscardHandler)
		}
		s.places, s.updating = make(chan struct{}, 2*runtime.GOMAXPROCS(0)), make(chan struct{}, 1)
	})
}

// Handler answers requests.
func (s *Service) Handler() (http.Handler, error) {
	switch {
	case s == nil || s.Model == nil || s.Model.density == nil:
		return nil, errors.New("serve.Service: there is no model: Load makes one")
	case s.Model.file.Predictive == nil:
		return nil, fmt.Errorf("serve.Service: the model was exported without predictions: %s", s.Model.file.NoPrediction)
	case s.Model.file.Draws == nil:
		return nil, fmt.Errorf("serve.Service: the model was exported without draws, by ppl.Program.ExportFitted: %w",
			draws.ErrNoDraws)
	case s.Online != nil && s.Online.model != s.Model:
		return nil, errors.New("serve.Service: Online is of another Model")
	case s.Bytes < 0 || s.Rows < 0 || s.Timeout < 0:
		return nil, errors.New("serve.Service: Bytes, Rows and Timeout are at least 0, which is their default")
	}
	if _, err := s.view(); err != nil {
		return nil, fmt.Errorf("serve.Service: %w", err)
	}
	s.start()
	mux := http.NewServeMux()
	type answer struct {
		method string
		handle http.HandlerFunc
	}
	all := map[string]answer{"/predict": {"POST", s.predict}, "/healthz": {"GET", s.health}, "/readyz": {"GET", s.ready},
		"/metrics": {"GET", s.metrics.write}, "/openapi.json": {"GET", s.describe}}
	if s.Online != nil {
		all["/update"] = answer{"POST", s.update}
	}
	for path, h := range all {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != h.method {
				w.Header().Set("Allow", h.method)
				fail(w, http.StatusMethodNotAllowed, fmt.Errorf("method %s: %s takes %s", r.Method, path, h.method))
				return
			}
			h.handle(w, r)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fmt.Errorf("path %q: there are %s", r.URL.Path,
			strings.Join(slices.Sorted(maps.Keys(all)), ", ")))
	})
	return mux, nil
}

// farewell is how long requests are still answered after the context has ended. net/http drops what it reads after
// Shutdown.
const farewell = 2 * time.Second

// Serve answers requests of a listener until the context ends. From then on it asks clients to close their connections.
// Two seconds later it takes no more, waits for requests under way, for twice the Timeout at most, and returns.
func (s *Service) Serve(ctx context.Context, l net.Listener) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	if l == nil {
		return errors.New("serve.Service: there is no listener")
	}
	leaving := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: leaving, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: s.Timeout,
		IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn)}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.draining.Store(true)
		time.Sleep(farewell)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.Timeout)
		defer cancel()
		stopped <- server.Shutdown(end)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve.Service: %w", err)
	}
	return <-stopped
}

// request is what /predict takes.
type request struct {
	Rows     []map[string]any `json:"rows"`
	Sites    []string         `json:"sites"`
	Interval float64          `json:"interval"`
	Key      string           `json:"key"` // of an update
}

// figures are what a prediction is told as.
type figures struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// predict answers /predict.
func (s *Service) predict(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, s.places, func(ctx context.Context, in request) (any, error) {
		if in.Key != "" {
			return nil, errors.New(`field "key": it is of an update`)
		}
		out, err := s.summaries(ctx, in)
		return map[string]any{"predictions": out}, err
	})
}

// update answers /update.
func (s *Service) update(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, s.updating, func(ctx context.Context, in request) (any, error) {
		if len(in.Sites) > 0 || in.Interval != defaultInterval {
			return nil, errors.New(`fields "sites" and "interval" are of predictions`)
		}
		data, err := s.Model.rowsOf(in.Rows, s.Model.file.Likelihood)
		if err != nil {
			return nil, err
		}
		return s.Online.update(ctx, len(in.Rows), data, in.Key)
	})
}

// answer reads a request of rows and writes what is made of it, in one of some places.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, places chan struct{},
	make func(context.Context, request) (any, error)) {
	begin, status := time.Now(), http.StatusOK
	rows := 0
	defer func() { s.metrics.add(status, rows, time.Since(begin)) }()
	refuse := func(code int, err error) {
		status = code
		s.Log.Warn(r.URL.Path, "status", code, "error", err)
		fail(w, code, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	in, err := s.read(w, r)
	if err != nil {
		refuse(http.StatusBadRequest, err)
		return
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		refuse(http.StatusServiceUnavailable, errors.New("there are too many requests: try again later"))
		return
	}
	out, err := make(ctx, in)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		refuse(http.StatusServiceUnavailable, fmt.Errorf("the answer takes more than %v: ask for fewer rows, or "+
			"set a longer Timeout", s.Timeout))
	case errors.Is(err, errOtherRows):
		refuse(http.StatusConflict, err)
	case errors.Is(err, errNotKept):
		refuse(http.StatusServiceUnavailable, err)
	case err != nil:
		refuse(http.StatusBadRequest, err)
	default:
		if rows = len(in.Rows); !write(w, out) {
			status = http.StatusInternalServerError
		}
	}
}

// read decodes a request.
func (s *Service) read(w http.ResponseWriter, r *http.Request) (in request, err error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.Bytes))
	if err != nil {
		return in, err
	}
	const body = `{"rows": [{"column": 1}]}`
	if err := records.Once(text, body); err != nil {
		return in, err
	}
	in.Interval = defaultInterval
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("the body: %w, expected %s", err, body)
	}
	if p := in.Interval; !(p > 0 && p < 1) {
		return in, fmt.Errorf(`field "interval": got %v, expected a number between 0 and 1`, p)
	}
	if n := len(in.Rows); n < 1 || n > s.Rows {
		return in, fmt.Errorf(`field "rows": got %d rows, expected 1 to %d`, n, s.Rows)
	}
	return in, nil
}

// summaries are the predictions of each row, by site: figures, or a list of them where a row has several numbers.
func (s *Service) summaries(ctx context.Context, in request) ([]map[string]any, error) {
	m, n := s.Model, len(in.Rows)
	if len(in.Sites) == 0 {
		in.Sites = m.file.Predictive.Data
	}
	data, err := m.rowsOf(in.Rows, m.file.Predictive)
	if err != nil {
		return nil, err
	}
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	q, kept, err := s.predictor(v, n, in.Sites)
	if err != nil {
		return nil, err
	}
	sites, places, err := selected(q.Outputs(), in.Sites)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, site := range sites {
		if len(site.Shape) == 0 || site.Shape[0] != n {
			return nil, fmt.Errorf("field \"sites\": %q, of shape %v, has no number for each row", site.Name, site.Shape)
		}
		size += site.Size
	}
	total := v.draws.Total()
	if size*total > mostNumbers {
		return nil, fmt.Errorf("field \"rows\": %d rows of %d draws are more than %d predictions: ask for fewer rows", n,
			total, mostNumbers)
	}
	all := s.room(size * total)
	defer s.columns.Put(&all)
	each := func(from, some int, outputs [][]float64) error {
		columns := all
		for j, i := range places {
			size := sites[j].Size
			for e := range size {
				column := columns[from : from+some]
				for k := range column {
					column[k] = outputs[i][k*size+e]
				}
				columns = columns[total:]
			}
		}
		return ctx.Err()
	}
	if kept {
		err = q.DrawKept(total, s.Seed, 0, data, each)
	} else {
		err = q.Draw(total, v.given, s.Seed, 0, data, each)
	}
	if err != nil {
		return nil, err
	}
	return told(sites, all, n, total, in.Interval), nil
}

// predictor is the prediction for so many rows. That of observed sites, for a few rows, keeps what it makes of draws.
func (s *Service) predictor(v *view, rows int, sites []string) (q *portable.Predictor, kept bool, err error) {
	p := s.Model.file.Predictive
	if rows > mostRowsKept || !slices.Equal(sites, p.Data) {
		q, err = s.Model.predictor(rows)
		return q, false, err
	}
	if q, ok := v.sized.Load(rows); ok {
		return q.(*portable.Predictor), true, nil
	}
	if q, err = p.At(rows, manyDraws, sites...); err != nil {
		return nil, false, err
	}
	if kept = q.Keep(v.draws.Total(), v.given, s.Seed, 0); kept {
		v.sized.Store(rows, q)
	}
	return q, kept, nil
}

// mostRowsKept bounds the memory of predictors.
const mostRowsKept = 8

// room is memory for so many numbers.
func (s *Service) room(n int) []float64 {
	if p, _ := s.columns.Get().(*[]float64); p != nil && cap(*p) >= n {
		return (*p)[:n]
	}
	return make([]float64, n)
}

// told are the figures of each row, from columns of all draws of each element.
func told(sites []draws.Site, all []float64, n, total int, interval float64) []map[string]any {
	out := make([]map[string]any, n)
	at := 0
	for _, site := range sites {
		each := site.Size / n
		for i := range n {
			if out[i] == nil {
				out[i] = make(map[string]any, len(sites))
			}
			some := make([]figures, each)
			for j := range some {
				some[j] = figuresOf(all[at*total:(at+1)*total], interval)
				at++
			}
			if len(site.Shape) == 1 {
				out[i][site.Name] = some[0]
			} else {
				out[i][site.Name] = some
			}
		}
	}
	return out
}

func figuresOf(x []float64, interval float64) figures {
	low, high := (1-interval)/2, (1+interval)/2
	mean := floats.Sum(x) / float64(len(x))
	sample.Order(x, low, high)
	return figures{mean, sample.Quantile(x, low), sample.Quantile(x, high)}
}

func (s *Service) health(w http.ResponseWriter, _ *http.Request) {
	out := map[string]any{"draws": s.Model.file.Draws.Total()}
	if s.Online != nil {
		out["updates"], _ = s.Online.Count()
	}
	write(w, out)
}

func (s *Service) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		fail(w, http.StatusServiceUnavailable, errors.New("the service drains"))
		return
	}
	write(w, map[string]any{"ready": true})
}

// write answers with JSON, which has no numbers that are not finite.
func write(w http.ResponseWriter, v any) bool {
	text, err := json.Marshal(v)
	if err != nil {
		fail(w, http.StatusInternalServerError, errors.New("a prediction is not finite"))
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // a client that has gone
	return true
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
