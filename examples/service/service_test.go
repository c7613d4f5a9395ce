package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/store"
)

// made are 1000 draws around a = 1, w = (2, 0.5), s = 0.5.
func made(t testing.TB) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "w", Offset: 1, Size: 2, Shape: []int{2}},
		{Name: "s", Offset: 3, Size: 1}}, nil, 1)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		require.NoError(t, d.AppendChain(0, []float64{1 + 0.1*rng.NormFloat64(), 2 + 0.05*rng.NormFloat64(),
			0.5 + 0.1*rng.NormFloat64(), 0.5}, nil))
	}
	return d
}

// learned is the design of the made-up days, as it comes back from its file.
func learned(t testing.TB) *data.Design {
	t.Helper()
	table, err := sales()
	require.NoError(t, err)
	design, err := learn(table)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "design.json")
	require.NoError(t, keep(path, design))
	design, err = load(path)
	require.NoError(t, err)
	return design
}

func serve(t testing.TB, state string) *httptest.Server {
	t.Helper()
	s, err := newService(made(t), learned(t), state)
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

// Predictions at h hours are N(1 + 2h, 0.1² + 0.05²h² + 0.5²) in the north, and in the south N(1.5 + 2h, …) with 0.1²
// more: the mean of 1000 within four standard errors, and the interval's ends within four of those of a quantile,
// √(p(1−p)/n)/φ with φ the density there, 0.058 for 2.5 %.
func TestPredict(t *testing.T) {
	server := serve(t, filepath.Join(t.TempDir(), "state.json"))
	const body = `{"rows": [{"hours": 0, "shop": "north"}, {"shop": "north", "hours": 3}, {"hours": 3, "shop": "south"}]}`
	status, text, err := post(server, "/predict", body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, text)
	var out struct{ Predictions []prediction }
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	require.Len(t, out.Predictions, 3)
	for i, want := range []struct{ mean, variance float64 }{{1, 0.26}, {7, 0.2825}, {7.5, 0.2925}} {
		p, sd := out.Predictions[i], math.Sqrt(want.variance)
		require.InDelta(t, want.mean, p.Mean, 4*sd/math.Sqrt(1000)+0.02) // the draws themselves have such an error
		end := 4 * sd * math.Sqrt(0.025*0.975/1000) / 0.058
		require.InDelta(t, p.Mean-1.96*sd, p.Low, end)
		require.InDelta(t, p.Mean+1.96*sd, p.High, end)
	}
}

// What is wrong in a request is answered by its name.
func TestBadRequests(t *testing.T) {
	refused := 0
	defer func() { t.Logf("seen: %d bad requests refused", refused) }()
	server := serve(t, filepath.Join(t.TempDir(), "state.json"))
	for _, c := range []struct{ path, body, want string }{
		{"/predict", "", "the body: got what is no JSON (EOF), expected {"},
		{"/predict", `{"rows": [`, "the body: got what is no JSON (unexpected EOF), expected {"},
		{"/predict", `{"rows": x}`, "the body: got what is no JSON (invalid character 'x'"},
		{"/predict", `{"hours": "x"}`, `field \"hours\": got an unknown field, expected {\"rows\": [{\"hours\": 1`},
		{"/predict", `[1]`, `the body: got a JSON array, expected {\"rows\"`},
		{"/predict", `{"rows": "x"}`, `field \"rows\": got a JSON string, expected a list of objects`},
		{"/predict", `{"rows": [1]}`, `field \"rows\": got a JSON number, expected a list of objects`},
		{"/predict", "{}", "0 rows: there must be from 1 to 1000"},
		{"/predict", `{"rows": [{"hours": 1}]}`, `\"shop\": there is no such column`},
		{"/predict", `{"rows": [{"hours": 1, "shop": "west"}]}`, `value \"west\": the training data do not have this level`},
		{"/predict", `{"rows": [{"hours": "a", "shop": "north"}]}`, `row 0, field \"hours\": got \"a\", expected a number`},
		{"/predict", `{"rows": [{"hours": null, "shop": "north"}]}`, `field \"hours\": got null, expected a number`},
		{"/predict", `{"rows": [{"hours": 1, "shop": 2}]}`, `row 0, field \"shop\": got 2, expected a string`},
		{"/predict", `{"rows": [{"hours": 1, "shop": "north"}, {"hours": 1, "shop": null}]}`,
			`row 1, field \"shop\": got null, expected a string`},
		{"/predict", `{"rows": [{"hours": 1, "shop": "north"}, {"hours": "a", "shop": "north"}]}`,
			`row 1, field \"hours\": got \"a\", expected a number`},
		{"/predict", `{"rows": [{"hours": 1, "shop": "north"}, {"hours": 1}]}`, "row 1 has 1 columns, and row 0 has 2"},
		{"/predict", `{"rows": [{"hours": 1, "shop": "north"}], "y": [1]}`, "it is for /observe"},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}]}`, "1 rows and 0 numbers in y"},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}], "y": ["b"]}`,
			`field \"y\": got a JSON string, expected a list of numbers`},
		{"/online", `{"rows": [{"hours": 1, "shop": "west"}]}`, "west"},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}], "y": [null]}`, `field \"y\": element 0 is null`},
		{"/observe", observation + observation, "more after the first document"},
		{"/observe", observation + " garbage", "more after the first document"},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}], "y": [3], "y": [4]}`, `field \"y\": it is there twice`},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}], "y": [3], "Y": [4]}`, `field \"y\": it is there twice`},
		{"/predict", `{"rows": [{"hours": 1, "hours": 9, "shop": "north"}]}`, `field \"hours\": it is there twice`},
		{"/observe", `{"rows": [{"hours": 1, "shop": "north"}], "y": [1e308]}`, "too large"},
		{"/predict", `{"rows": [{"hours": 1e308, "shop": "north"}]}`, "too large"},
		{"/online", `{"rows": [{"hours": 1e308, "shop": "north"}]}`, "too large"},
	} {
		status, text, err := post(server, c.path, c.body)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, status, c.body)
		require.Contains(t, text, c.want, c.body)
		refused++
	}
	r, err := server.Client().Get(server.URL + "/healthz")
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"draws": 1000, "updates": 0}`, string(text), "nothing has been observed")
}

// All answers are JSON: those to other methods, with the one that there is, and to other paths.
func TestOtherMethods(t *testing.T) {
	server := serve(t, filepath.Join(t.TempDir(), "state.json"))
	for _, c := range []struct {
		method, path, allow string
		status              int
		want                string
	}{
		{"GET", "/predict", "POST", 405, `{"error": "method GET: /predict takes POST"}`},
		{"PUT", "/observe", "POST", 405, `{"error": "method PUT: /observe takes POST"}`},
		{"DELETE", "/online", "POST", 405, `{"error": "method DELETE: /online takes POST"}`},
		{"POST", "/healthz", "GET", 405, `{"error": "method POST: /healthz takes GET"}`},
		{"POST", "/other", "", 404, `{"error": "path \"/other\": there are /predict, /observe, /online and /healthz"}`},
	} {
		request, err := http.NewRequest(c.method, server.URL+c.path, nil)
		require.NoError(t, err)
		r, err := server.Client().Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, c.status, r.StatusCode)
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, c.allow, r.Header.Get("Allow"))
		require.JSONEq(t, c.want, string(text))
	}
}

// A key makes an observation count once, however often and wherever it is sent: at once, later, and after a restart of
// the service. Its answer stays the first one. Without a key each request counts.
func TestIdempotencyKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	send := func(server *httptest.Server, key, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequest("POST", server.URL+"/observe", strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Idempotency-Key", key)
		r, err := server.Client().Do(request)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(text)
	}
	first := serve(t, file)
	var all sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		all.Go(func() { _, answers[i] = send(first, "a", observation) })
	}
	all.Wait()
	for _, text := range answers {
		require.JSONEq(t, `{"updates": 1}`, text)
	}
	_, text := send(first, "b", observation)
	require.JSONEq(t, `{"updates": 2}`, text)
	before, err := os.ReadFile(file)
	require.NoError(t, err)

	again := serve(t, file)
	_, text = send(again, "a", observation)
	require.JSONEq(t, `{"updates": 1}`, text)
	status, text := send(again, "a", `{"rows": [{"hours": 2, "shop": "north"}], "y": [3]}`)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, text, `\"a\": the key was given to other data`)
	status, text = send(again, strings.Repeat("k", 256), observation)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "got 256 bytes, expected at most 255")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "nothing has changed")
	status, text = send(again, "order-\xe9", observation)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "expected UTF-8")
	for want := 3; want < 5; want++ {
		_, text = send(again, "", observation)
		require.JSONEq(t, fmt.Sprintf(`{"updates": %d}`, want), text)
	}
	_, text = send(serve(t, file), "b", observation)
	require.JSONEq(t, `{"updates": 2}`, text, "observations without a key forget none")
}

// The last thousand keys are remembered, and no more.
func TestMostKeys(t *testing.T) {
	f, err := newFilter(made(t), learned(t).Names(), filepath.Join(t.TempDir(), "state.json"))
	require.NoError(t, err)
	x, y := [][]float64{{2, 1}}, []float64{7}
	for i := range mostKeys + 1 {
		f.last.Keys = append(f.last.Keys, answered{Key: fmt.Sprint(i)})
	}
	f.last.Keys = f.last.Keys[1:]
	_, err = f.observe("new", x, y)
	require.NoError(t, err)
	require.Len(t, f.last.Keys, mostKeys)
	require.Equal(t, "2", f.last.Keys[0].Key)
	require.Equal(t, "new", f.last.Keys[mostKeys-1].Key)
}

// The filter is Bayes' rule of a linear Gaussian model: from N(m, C) a datum y at h = (1, x) gives the gain k =
// Ch/(hᵀCh + s²), the mean m + k(y − hᵀm) and the covariance C − k hᵀC. Its prediction has mean hᵀm and variance
// hᵀCh + s².
func TestObserveIsBayes(t *testing.T) {
	f, err := newFilter(made(t), learned(t).Names(), filepath.Join(t.TempDir(), "state.json"))
	require.NoError(t, err)
	c, m := mat.NewDense(3, 3, f.last.Covariance), mat.NewVecDense(3, f.last.Mean)
	h := mat.NewVecDense(3, []float64{1, 2, 1})
	var ch mat.VecDense
	ch.MulVec(c, h)
	mean, variance := mat.Dot(h, m), mat.Dot(h, &ch)+f.noise*f.noise
	predicted, _ := f.predict([][]float64{{2, 1}})
	require.InDelta(t, mean, predicted[0].Mean, 1e-12)
	require.InDelta(t, 2*1.96*math.Sqrt(variance), predicted[0].High-predicted[0].Low, 1e-12)
	_, err = f.observe("", [][]float64{{2, 1}}, []float64{7})
	require.NoError(t, err)
	after := f.last
	for i := range 3 {
		gain := ch.AtVec(i) / variance
		require.InDelta(t, m.AtVec(i)+gain*(7-mean), after.Mean[i], 1e-10)
		for j := range 3 {
			require.InDelta(t, c.At(i, j)-gain*ch.AtVec(j), after.Covariance[3*i+j], 1e-10)
		}
	}
}

// The state of a filter is of its design: another one, with as many columns, does not go on from it.
func TestStateOfAnotherDesign(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	f, err := newFilter(made(t), []string{"hours", "shop[south]"}, file)
	require.NoError(t, err)
	_, err = f.observe("", [][]float64{{2, 1}}, []float64{7})
	require.NoError(t, err)
	_, err = newFilter(made(t), []string{"hours", "shop[north]"}, file)
	require.ErrorContains(t, err, `design with the columns ["hours" "shop[south]"], and this one has ["hours" "shop[n`)
	again, err := newFilter(made(t), []string{"hours", "shop[south]"}, file)
	require.NoError(t, err)
	require.Equal(t, f.last, again.last)
}

// A request that ends while it waits for a place computes nothing and returns.
func TestCancellation(t *testing.T) {
	s, err := newService(made(t), learned(t), filepath.Join(t.TempDir(), "state.json"))
	require.NoError(t, err)
	for range cap(s.places) {
		s.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.evaluate(ctx, [][]float64{{1, 0}})
	require.ErrorIs(t, err, context.Canceled)
}

// child is the environment variable that makes the test a service on the draws and the state in a folder.
const child = "KELVIN_EXAMPLE_SERVICE"

// program is the environment variable that makes the test the command.
const program = "KELVIN_EXAMPLE_SERVICE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		main()
		os.Exit(0)
	}
	if dir := os.Getenv(child); dir != "" {
		inf, err := store.Open(filepath.Join(dir, "run.zarr"))
		var design *data.Design
		if err == nil {
			design, err = load(filepath.Join(dir, "design.json"))
		}
		if err == nil {
			var s *service
			if s, err = newService(inf.Posterior, design, filepath.Join(dir, "state.json")); err == nil {
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

// observation is one datum.
const observation = `{"rows": [{"hours": 1, "shop": "north"}], "y": [3]}`

// A service that was killed has, when it comes back, every update that it had answered.
func TestKilledServiceGoesOn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, store.WriteZarr(filepath.Join(dir, "run.zarr"), &store.Inference{Posterior: made(t)},
		store.ZarrOptions{}))
	require.NoError(t, keep(filepath.Join(dir, "design.json"), learned(t)))
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
			r, err := http.Post(url+"/observe", "application/json", strings.NewReader(observation))
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
	const body = `{"rows": [{"hours": 0, "shop": "north"}, {"hours": 1, "shop": "south"}, {"hours": 2, "shop": "north"},
		{"hours": 3, "shop": "south"}, {"hours": 4, "shop": "north"}]}`
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
					path, text = "/observe", observation
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
	_, text, err := post(server, "/observe", observation)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"updates": %d}`, clients*each/10+1), text)
	slices.Sort(times)
	t.Logf("%d requests of %d clients: %.0f in a second, median %v, p99 %v, %d MB resident", len(times), clients,
		float64(len(times))/seconds, times[len(times)/2].Round(time.Millisecond),
		times[len(times)*99/100].Round(time.Millisecond), testkit.Resident(t)>>20)
}

// A state with a bit changed is refused, wherever the bit is; so are numbers that no filter has.
func TestDamagedState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	columns := learned(t).Names()
	f, err := newFilter(made(t), columns, file)
	require.NoError(t, err)
	_, err = f.observe("key", [][]float64{{2, 1}}, []float64{7})
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := range 8 * len(text) {
		bad := bytes.Clone(text)
		bad[i/8] ^= 1 << (i % 8)
		require.Error(t, new(stored).read(bad), "bit %d", i)
	}
	for name, change := range map[string]func(s *stored){
		"updates": func(s *stored) { s.Steps = -5 }, "variance": func(s *stored) { s.Covariance[0] = -1 }} {
		var s stored
		require.NoError(t, s.read(text))
		change(&s)
		bad, err := s.text()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		_, err = newFilter(made(t), columns, file)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "remove it to begin anew")
	}
	t.Logf("seen: %d bits of a state flipped, all refused", 8*len(text))
}

// The command itself: a second one on the state is refused, a client that sends its request slowly does not keep the
// place, and at SIGTERM requests in flight, on idle connections and on new ones are answered.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, store.WriteZarr(filepath.Join(dir, "run.zarr"), &store.Inference{Posterior: made(t)},
		store.ZarrOptions{}))
	require.NoError(t, keep(filepath.Join(dir, "design.json"), learned(t)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	start := func() (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		c := exec.Command(os.Args[0], "-draws", filepath.Join(dir, "run.zarr"), "-design",
			filepath.Join(dir, "design.json"), "-state", filepath.Join(dir, "state.json"), "-listen", at)
		c.Env, c.Stderr = append(os.Environ(), program+"=1"), &out
		require.NoError(t, c.Start())
		return c, &out
	}
	first, _ := start()
	defer func() { _ = first.Process.Kill() }()
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + at + "/healthz")
		return err == nil && r.Body.Close() == nil
	}, 20*time.Second, 20*time.Millisecond)
	second, text := start()
	require.Error(t, second.Wait())
	require.Contains(t, text.String(), fmt.Sprintf("is in use by process %d", first.Process.Pid))

	slow, err := net.Dial("tcp", at)
	require.NoError(t, err)
	_, err = slow.Write([]byte("POST /observe HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"))
	require.NoError(t, err)
	_, err = io.ReadAll(slow) // it ends without another byte of the body
	require.NoError(t, err)

	began, err := net.Dial("tcp", at)
	require.NoError(t, err)
	_, err = fmt.Fprintf(began, "POST /observe HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(observation),
		observation[:20])
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond) // the request is read
	idle, err := net.Dial("tcp", at)
	require.NoError(t, err)
	_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answers := bufio.NewReader(idle)
	health, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	_, err = io.ReadAll(health.Body)
	require.NoError(t, err)
	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	time.Sleep(200 * time.Millisecond)
	_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	health, err = http.ReadResponse(answers, nil)
	require.NoError(t, err, "on a connection that was idle at SIGTERM")
	require.True(t, health.Close)
	health, err = http.Get("http://" + at + "/healthz")
	require.NoError(t, err, "on a new connection")
	require.NoError(t, health.Body.Close())
	time.Sleep(farewell)
	_, err = began.Write([]byte(observation[20:]))
	require.NoError(t, err)
	answer, err := io.ReadAll(began)
	require.NoError(t, err)
	require.Contains(t, string(answer), `{"updates":1}`)
	require.NoError(t, first.Wait())
	t.Log("seen: a second process on the state refused; a body that never ends cut off; at SIGTERM requests in " +
		"flight, on idle connections and on new ones are answered")
}
