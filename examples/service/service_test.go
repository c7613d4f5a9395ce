package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/resident"
	"github.com/kelvin-ppl/kelvin/store"
)

// made are 1000 draws around a = 1, b = 2, s = 0.5.
func made(t testing.TB) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1},
		{Name: "s", Offset: 2, Size: 1}}, nil, 1)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		require.NoError(t, d.AppendChain(0, []float64{1 + 0.1*rng.NormFloat64(), 2 + 0.05*rng.NormFloat64(), 0.5}, nil))
	}
	return d
}

func serve(t testing.TB, state string) *httptest.Server {
	t.Helper()
	s, err := newService(made(t), state)
	require.NoError(t, err)
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	return server
}

func post(server *httptest.Server, path, body string) (int, string, error) {
	r, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// Predictions at x are N(1 + 2x, 0.1² + 0.05²x² + 0.5²): the mean of 1000 within four standard errors, and the
// interval's ends within four of those of a quantile, √(p(1−p)/n)/φ with φ the density there, 0.058 for 2.5 %.
func TestPredict(t *testing.T) {
	server := serve(t, filepath.Join(t.TempDir(), "state.json"))
	status, text, err := post(server, "/predict", `{"x": [0, 3]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, text)
	var out struct{ Predictions []prediction }
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	require.Len(t, out.Predictions, 2)
	for _, p := range out.Predictions {
		sd := math.Sqrt(0.01 + 0.0025*p.X*p.X + 0.25)
		require.InDelta(t, 1+2*p.X, p.Mean, 4*sd/math.Sqrt(1000)+0.02) // the draws themselves have such an error
		end := 4 * sd * math.Sqrt(0.025*0.975/1000) / 0.058
		require.InDelta(t, p.Mean-1.96*sd, p.Low, end)
		require.InDelta(t, p.Mean+1.96*sd, p.High, end)
	}
	for path, bad := range map[string][]string{"/predict": {"", "{}", `{"x": []}`, `{"x": ["a"]}`, `{"z": [1]}`},
		"/observe": {"{}", `{"x": 1}`, `{"x": 1, "y": "b"}`}} {
		for _, body := range bad {
			status, text, err := post(server, path, body)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, text, "error")
		}
	}
}

// The filter is Bayes' rule of a linear Gaussian model: from N(m, C) a datum y at h = (1, x) gives the gain k =
// Ch/(hᵀCh + s²), the mean m + k(y − hᵀm) and the covariance C − k hᵀC.
func TestObserveIsBayes(t *testing.T) {
	f, err := newFilter(made(t), filepath.Join(t.TempDir(), "state.json"))
	require.NoError(t, err)
	before := f.last
	after, err := f.observe(2, 7)
	require.NoError(t, err)
	c, m := before.Covariance, before.Mean
	ch := []float64{c[0] + 2*c[1], c[2] + 2*c[3]}
	scale := ch[0] + 2*ch[1] + f.noise*f.noise
	for i := range 2 {
		require.InDelta(t, m[i]+ch[i]/scale*(7-m[0]-2*m[1]), after.Mean[i], 1e-10)
		for j := range 2 {
			require.InDelta(t, c[2*i+j]-ch[i]*ch[j]/scale, after.Covariance[2*i+j], 1e-10)
		}
	}
}

// A request that ends while it waits for a place computes nothing and returns.
func TestCancellation(t *testing.T) {
	s, err := newService(made(t), filepath.Join(t.TempDir(), "state.json"))
	require.NoError(t, err)
	for range cap(s.places) {
		s.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.evaluate(ctx, []float64{1})
	require.ErrorIs(t, err, context.Canceled)
}

// child is the environment variable that makes the test a service on the draws and the state in a folder.
const child = "KELVIN_EXAMPLE_SERVICE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		inf, err := store.Open(filepath.Join(dir, "run.zarr"))
		if err == nil {
			var s *service
			if s, err = newService(inf.Posterior, filepath.Join(dir, "state.json")); err == nil {
				server := httptest.NewServer(s.handler())
				fmt.Println(server.URL)
				select {}
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A service that was killed has, when it comes back, every update that it had answered.
func TestKilledServiceGoesOn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, store.WriteZarr(filepath.Join(dir, "run.zarr"), &store.Inference{Posterior: made(t)},
		store.ZarrOptions{}))
	answered := 0
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line := make([]byte, 64)
		n, err := out.Read(line)
		require.NoError(t, err)
		url := strings.TrimSpace(string(line[:n]))
		r, err := http.Get(url + "/healthz")
		require.NoError(t, err)
		var health struct{ Draws, Updates int }
		require.NoError(t, json.NewDecoder(r.Body).Decode(&health))
		r.Body.Close()
		require.Equal(t, answered, health.Updates)
		require.Equal(t, 1000, health.Draws)
		for range 5 {
			r, err := http.Post(url+"/observe", "application/json", strings.NewReader(`{"x": 1, "y": 3}`))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, r.StatusCode)
			r.Body.Close()
			answered++
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	require.True(t, bytes.Contains(state, []byte(`"Steps":10`)), string(state))
}

// 64 clients at once get the predictions that one alone gets, and their updates are all counted: no request fails.
func TestLoad(t *testing.T) {
	const clients, each = 64, 20
	server := serve(t, filepath.Join(t.TempDir(), "state.json"))
	server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	const body = `{"x": [0, 1, 2, 3, 4]}`
	_, want, err := post(server, "/predict", body)
	require.NoError(t, err)
	var mu sync.Mutex
	var times []time.Duration
	errs := make([]error, clients)
	began := time.Now()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range each {
				from := time.Now()
				path, text := "/predict", body
				if i%10 == 9 {
					path, text = "/observe", `{"x": 1, "y": 3}`
				}
				status, got, err := post(server, path, text)
				if err != nil || status != http.StatusOK || path == "/predict" && got != want {
					errs[c] = fmt.Errorf("%s: status %d, %v: %s", path, status, err, got)
					return
				}
				mu.Lock()
				times = append(times, time.Since(from))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	seconds := time.Since(began).Seconds()
	for _, err := range errs {
		require.NoError(t, err)
	}
	_, text, err := post(server, "/observe", `{"x": 1, "y": 3}`)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"updates": %d}`, clients*each/10+1), text)
	slices.Sort(times)
	t.Logf("%d requests of %d clients: %.0f in a second, median %v, p99 %v, %d MB resident", len(times), clients,
		float64(len(times))/seconds, times[len(times)/2].Round(time.Millisecond),
		times[len(times)*99/100].Round(time.Millisecond), resident.Bytes(t)>>20)
}
