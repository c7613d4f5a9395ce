package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/stretchr/testify/require"
)

// ask sends a request to a service, and decodes the answer.
func ask(t *testing.T, h http.Handler, method, path, body string) (status int, out map[string]any) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out), w.Body.String())
	return w.Code, out
}

// A service answers with mean and interval of the predictions of each row, which are those of the draws.
func TestService(t *testing.T) {
	m := load(t, "testdata/app/model.kelvin")
	h, err := (&serve.Service{Model: m, Seed: 3}).Handler()
	require.NoError(t, err)
	rows := []map[string]any{{"hours": 1.5, "shop": "south"}, {"hours": 2., "shop": "north"}}
	for n := range []int{0, 1, 2, 3, 20} { // predictors of few rows are kept, those of many are not
		body, err := json.Marshal(map[string]any{"rows": slices.Repeat(rows, n+1), "sites": []string{"y", "mean", "visits"},
			"interval": 0.8})
		require.NoError(t, err)
		for range 2 {
			status, out := ask(t, h, "POST", "/predict", string(body))
			require.Equal(t, http.StatusOK, status, out)
			require.Len(t, out["predictions"], 2*n+2)
			x := slices.Repeat([]float64{1.5, 1, 2, 0}, n+1)
			want, err := m.Predict(nil, 2*n+2, map[string][]float64{"x": x}, 3)
			require.NoError(t, err)
			for _, site := range []string{"y", "mean", "visits"} {
				mean, err := want.Mean(site)
				require.NoError(t, err)
				ends, err := want.Quantile(site, 0.1, 0.9)
				require.NoError(t, err)
				for i, p := range out["predictions"].([]any) {
					got := p.(map[string]any)[site].(map[string]any)
					require.InDelta(t, mean[i], got["mean"], 1e-12*(1+math.Abs(mean[i])))
					require.InDelta(t, ends[0][i], got["low"], 1e-12*(1+math.Abs(ends[0][i])))
					require.InDelta(t, ends[1][i], got["high"], 1e-12*(1+math.Abs(ends[1][i])))
				}
			}
		}
	}
	posterior := m.Posterior()
	require.Equal(t, []string{"a", "w[hours]", "w[shop[south]]", "s"}, posterior.Names())
	mean, err := m.Predict(nil, 1, map[string][]float64{"x": {1.5, 1}}, 1, "mean")
	require.NoError(t, err)
	for k, row := range posterior.Rows() {
		require.InDelta(t, row[0]+1.5*row[1]+row[2], mean.Rows()[k][0], 1e-14)
	}
	// Without sites the observed ones are told.
	_, out := ask(t, h, "POST", "/predict", `{"rows": [{"hours": 1, "shop": "north"}]}`)
	require.Len(t, out["predictions"].([]any)[0], 2)
	_, out = ask(t, h, "GET", "/openapi.json", "")
	text, err := json.Marshal(out)
	require.NoError(t, err)
	require.Contains(t, string(text), `"enum":["north","south"]`)
	_, out = ask(t, h, "GET", "/healthz", "")
	require.EqualValues(t, map[string]any{"draws": 200.}, out)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, w.Body.String(), "kelvin_requests_total{code=\"2xx\"} 11\n")
	require.Contains(t, w.Body.String(), "kelvin_request_seconds_bucket{le=\"+Inf\"} 11\n")
}

// The library's predictions are those of any processor, to 4 units in the last place of their size.
func TestPredictionsAnywhere(t *testing.T) {
	m := load(t, "testdata/app/model.kelvin")
	var want map[string][]float64
	require.NoError(t, json.Unmarshal(read(t, "testdata/app/predictions.json"), &want))
	got, err := m.Predict(nil, 2, map[string][]float64{"x": {1.5, 1, 2, 0}}, 3)
	require.NoError(t, err)
	worst := 0.0
	for name, values := range want {
		s, err := got.Site(name)
		require.NoError(t, err)
		for i, v := range values {
			g := got.Row(0, i/s.Size)[s.Offset+i%s.Size]
			worst = max(worst, math.Abs(g-v)/max(1, math.Abs(v)))
		}
	}
	t.Logf("differences up to %.1f units in the last place", worst/0x1p-52)
	require.LessOrEqual(t, worst, 4*0x1p-52)
}

// What is wrong with a request, and where, the answer says.
func TestServiceRefuses(t *testing.T) {
	m := load(t, "testdata/app/model.kelvin")
	h, err := (&serve.Service{Model: m, Rows: 2, Bytes: 200}).Handler()
	require.NoError(t, err)
	const good = `{"hours": 1, "shop": "north"}`
	for body, words := range map[string]string{
		`{"rows": []}`: "0 rows, expected 1 to 2",
		`{"rows": [` + good + `,` + good + `,` + good + `]}`:    "3 rows, expected 1 to 2",
		`{"rows": [{"hours": 1}]}`:                              "shop",
		`{"rows": [{"hours": "1", "shop": "north"}]}`:           `field "hours": got "1", expected`,
		`{"rows": [{"hours": 1, "shop": "east"}]}`:              "east",
		`{"rows": [` + good + `, {"hours": 1}]}`:                "row 1 has 1 columns",
		`{"rows": [` + good + `], "sites": ["z"]}`:              `no "z"`,
		`{"rows": [` + good + `], "sites": ["a"]}`:              "no number for each row",
		`{"rows": [` + good + `], "interval": 1}`:               "between 0 and 1",
		`{"row": [` + good + `]}`:                               `unknown field`,
		`{"rows": [` + good + `]} {}`:                           "more after",
		`{"rows": [` + good + `]}}`:                             "more after",
		`{"rows": [` + good + `], "rows": [` + good + `]}`:      "there twice",
		`{"rows": [{"hours": 1, "shop": "north", "hours": 2}]}`: "there twice",
		`{"rows": [{"hours": null, "shop": "north"}]}`:          "got null",
		`{`: "the body",
		`{"rows": [` + good + `], "sites": ["` + strings.Repeat("y", 200) + `"]}`: "too large",
	} {
		status, out := ask(t, h, "POST", "/predict", body)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, out["error"], words, body)
	}
	status, _ := ask(t, h, "GET", "/predict", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = ask(t, h, "GET", "/", "")
	require.Equal(t, http.StatusNotFound, status)
	for words, s := range map[string]*serve.Service{"no model": {}, "without predictions": {Model: load(t, stored)},
		"at least 0": {Model: m, Rows: -1}} {
		_, err := s.Handler()
		require.ErrorContains(t, err, words)
	}
}

// Clients at once get what one alone gets. A service whose context ends lets requests under way end.
func TestServiceServes(t *testing.T) {
	s := &serve.Service{Model: load(t, "testdata/app/model.kelvin")}
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	post := func(n int) (string, error) {
		body := `{"rows": [` + strings.Repeat(`{"hours": 1, "shop": "north"},`, n) + `{"hours": 2, "shop": "south"}]}`
		r, err := http.Post(url+"/predict", "application/json", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer func() { _ = r.Body.Close() }()
		text, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", r.Status, text)
		}
		return string(text), err
	}
	var want [12]string
	for n := range want {
		want[n], err = post(n)
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for c := range 16 {
		all.Go(func() {
			for i := range 20 {
				n := (i + c) % len(want)
				if got, err := post(n); err != nil || got != want[n] {
					t.Errorf("%v: %s instead of %s", err, got, want[n])
				}
			}
		})
	}
	all.Wait()
	stop()
	for range 20 { // what is sent while it drains is answered
		got, err := post(0)
		require.NoError(t, err)
		require.Equal(t, want[0], got)
	}
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	_, err = post(0)
	require.Error(t, err)
}

// A file with predictions and draws is written as it was read, and one with a wrong bit anywhere is an error.
func TestDamagedPredictions(t *testing.T) {
	good := read(t, "testdata/app/model.kelvin")
	for i := 0; i < len(good); i += 7 {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		_, err := serve.Load(bytes.NewReader(bad))
		require.ErrorIs(t, err, serve.ErrFile, "byte %d", i)
	}
}
