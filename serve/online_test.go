//go:build cgo

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// normal has a mean of law N(0, 3²) and data of variance 1, and a scale with no data.
func normal(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 3))
	c.Sample("s", dist.Exponential(1))
	c.Plate("rows", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Data("x").Mul(mu), 1), c.Data("y"))
	})
}

// exact are n draws of the posterior of normal at rows x, y, and its mean and precision.
func exact(t *testing.T, x, y []float64, n int, seed uint64) (p *ppl.Program, posterior *draws.Draws) {
	p, err := ppl.Compile(normal, infer.Batch{"x": detached(x), "y": detached(y)})
	require.NoError(t, err)
	mean, precision := law(x, y)
	rng := rand.New(rand.NewPCG(seed, 99))
	posterior, err = draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "s", Size: 1, Offset: 1}}, nil, 1)
	require.NoError(t, err)
	for range n {
		require.NoError(t, posterior.AppendChain(0,
			[]float64{mean + rng.NormFloat64()/math.Sqrt(precision), rng.ExpFloat64()}, nil))
	}
	posterior.SetSpace(draws.Named)
	return p, posterior
}

func second[T, U any](_ T, v U) U { return v }

// law is the mean and the precision of mu.
func law(x, y []float64) (mean, precision float64) {
	precision = 1.0 / 9
	for i := range x {
		precision += x[i] * x[i]
		mean += x[i] * y[i]
	}
	return mean / precision, precision
}

func detached(v []float64) torch.Tensor {
	t := torch.Must(torch.FromSlice(v))
	torch.Detach(t)
	return t
}

// stream are rows whose outcomes move away from where the first ones were.
func stream(n int, slope float64) (x, y []float64) {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	for range n {
		x = append(x, rng.NormFloat64())
		y = append(y, slope*x[len(x)-1]+rng.NormFloat64())
	}
	return x, y
}

// Updates by few rows, by many, and by rows that move the posterior far give the law of all rows, of 20 seeds. A
// variable that no row says anything about keeps its law.
func TestOnlineIsBayes(t *testing.T) {
	x, y := stream(20, 1)
	allX, allY := slices.Clone(x), slices.Clone(y)
	moreX, moreY := stream(300, 2.5)
	const n = 1000
	var means, variances, scales []float64
	for seed := range uint64(20) {
		p, posterior := exact(t, x, y, n, seed)
		u, err := at(infertest.Exported(t, p, posterior)).Online("", seed)
		require.NoError(t, err)
		from := 0
		for _, rows := range []int{1, 2, 7, 290} {
			require.NoError(t, u.Update(context.Background(), rows, map[string][]float64{"x": moreX[from : from+rows],
				"y": moreY[from : from+rows]}))
			from += rows
		}
		require.GreaterOrEqual(t, u.ESS(), n/2.0)
		require.Equal(t, 300, second(u.Count()))
		after, err := u.Posterior()
		require.NoError(t, err)
		mean, err := after.Mean("mu")
		require.NoError(t, err)
		sd, err := after.SD("mu")
		require.NoError(t, err)
		scale, err := after.Mean("s")
		require.NoError(t, err)
		means, variances, scales = append(means, mean[0]), append(variances, sd[0]*sd[0]), append(scales, scale[0])
	}
	mean, precision := law(append(allX, moreX...), append(allY, moreY...))
	for name, of := range map[string]struct {
		got  []float64
		want float64
	}{"mean": {means, mean}, "variance": {variances, 1 / precision}, "mean of s": {scales, 1}} {
		m, se := testkit.MeanSE(of.got)
		z := (m - of.want) / se
		t.Logf("%s: %.2f standard errors of %d seeds", name, z, len(of.got))
		require.Less(t, math.Abs(z), 4.0, name)
	}
}

// online opens a folder for the model of some draws.
func online(t *testing.T, dir string) (*serve.Model, *serve.Online) {
	x, y := stream(20, 1)
	p, posterior := exact(t, x, y, 200, 1)
	m := at(infertest.Exported(t, p, posterior))
	u, err := m.Online(dir, 5)
	require.NoError(t, err)
	return m, u
}

// rowsAt are the rows of update k.
func rowsAt(k int) map[string][]float64 {
	return map[string][]float64{"x": {math.Cos(float64(k)), 1.5}, "y": {2 * math.Cos(float64(k)), 4.5}}
}

// A folder that is opened again goes on with the same numbers, also without the particles that it kept, and after a
// line that was cut; other damage is an error that names the line. After an error all is as it was.
func TestOnlineFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "updates")
	m, u := online(t, dir)
	_, err := m.Online(dir, 5)
	require.ErrorContains(t, err, "in use")
	for k := range 12 {
		require.NoError(t, u.Update(context.Background(), 2, rowsAt(k)))
	}
	want, err := u.Posterior()
	require.NoError(t, err)
	for message, data := range map[string]map[string][]float64{
		`no "y"`: {"x": {1, 2}}, `3 numbers of "x", expected 2`: {"x": {1, 2, 3}, "y": {1, 2}},
		"finite numbers": {"x": {1, math.NaN()}, "y": {1, 2}}, "no draw makes": {"x": {1, 1}, "y": {1, 1e200}},
		"no other row would count": {"x": {1, 1}, "y": {1, 1e9}}, "too far from the draws": {"x": {1, 1}, "y": {1, 1e5}}} {
		require.ErrorContains(t, u.Update(context.Background(), 2, data), message)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	far := map[string][]float64{"x": {3, 3}, "y": {90, 90}}
	require.ErrorIs(t, u.Update(cancelled, 2, far), context.Canceled)
	require.Equal(t, 12, at(u.Count()))
	require.NoError(t, u.Close())
	require.ErrorContains(t, u.Update(context.Background(), 2, rowsAt(0)), "could not be kept")

	path := filepath.Join(dir, "rows.jsonl")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "cloud"))
	same := func() {
		again, err := m.Online(dir, 5)
		require.NoError(t, err)
		require.Equal(t, 12, at(again.Count()))
		got, err := again.Posterior()
		require.NoError(t, err)
		for k := range want.Len(0) {
			require.Equal(t, want.Row(0, k), got.Row(0, k))
		}
		require.NoError(t, again.Close())
	}
	same()
	require.NoError(t, os.Truncate(filepath.Join(dir, "cloud"), 100))
	same()
	require.NoError(t, os.WriteFile(path, append(slices.Clone(text), `{"check": 1`...), 0o644))
	same()
	_, err = m.Online(dir, 6)
	require.ErrorContains(t, err, "another model file or seed")
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[3] = bytes.Replace(lines[3], []byte("1.5"), []byte("1.6"), 1)
	require.NoError(t, os.WriteFile(path, bytes.Join(lines, nil), 0o644))
	_, err = m.Online(dir, 5)
	require.ErrorContains(t, err, "line 4: the line is damaged")
}

// A model whose rows say more than its observed values, or that has a variable for each row, has no updates, and the
// error says why.
func TestOnlineRefuses(t *testing.T) {
	x, y := stream(20, 1)
	batch := infer.Batch{"x": detached(x), "y": detached(y)}
	for message, model := range map[string]ppl.Model{
		"a Factor": func(c *ppl.Ctx) {
			normal(c)
			c.Factor("f", c.Data("x").Sum())
		},
		"must have the latent variables": func(c *ppl.Ctx) {
			s := c.Sample("s", dist.HalfNormal(1))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Sample("z", dist.Normal(0, s)), 1), c.Data("y"))
			})
		},
		"the plan for 38 rows": func(c *ppl.Ctx) { // each row depends on all
			m := c.Sample("m", dist.Normal(0, 1))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(m.Add(c.Data("x").Mean()), 1), c.Data("y"))
			})
		},
		"rows add": func(c *ppl.Ctx) {
			m := c.Sample("m", dist.Normal(0, 1))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(m, 1), c.Data("y"))
				c.Factor("one", c.Data("x").Gt(1.5).Mul(m)) // of few rows
			})
		},
	} {
		p, err := ppl.Compile(model, batch)
		require.NoError(t, err)
		posterior := at(infertest.PosteriorAt(t, p, 20))
		if message == "must have the latent variables" {
			posterior, err = posterior.Select("s")
			require.NoError(t, err)
		}
		_, err = at(infertest.Exported(t, p, posterior)).Online("", 1)
		require.ErrorContains(t, err, "exported without updates")
		require.ErrorContains(t, err, message)
	}
	p, _ := exact(t, x, y, 20, 1)
	var file bytes.Buffer
	require.NoError(t, p.Export(&file))
	m, err := serve.Load(&file)
	require.NoError(t, err)
	_, err = m.Online("", 1)
	require.ErrorContains(t, err, "there are no draws")
}

// child is the environment variable that makes the test a service with the model and the folder of updates in a folder.
const child = "KELVIN_SERVE_ONLINE"

func TestMain(m *testing.M) {
	dir := os.Getenv(child)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := func() error {
		text, err := os.ReadFile(filepath.Join(dir, "model.kelvin"))
		if err != nil {
			return err
		}
		m, err := serve.Load(bytes.NewReader(text))
		if err != nil {
			return err
		}
		u, err := m.Online(filepath.Join(dir, "updates"), 5)
		if err != nil {
			return err
		}
		service := serve.Service{Model: m, Online: u}
		h, err := service.Handler()
		if err != nil {
			return err
		}
		fmt.Println(httptest.NewServer(h).URL)
		select {}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// posted is the answer to rows, by /update.
func posted(url string, rows map[string][]float64, key string) (updates int, err error) {
	var all []map[string]float64
	for i := range rows["x"] {
		all = append(all, map[string]float64{"x": rows["x"][i], "y": rows["y"][i]})
	}
	body, err := json.Marshal(map[string]any{"rows": all, "key": key})
	if err != nil {
		return 0, err
	}
	r, err := http.Post(url+"/update", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", r.StatusCode, text)
	}
	var out struct{ Updates int }
	return out.Updates, errors.Join(err, json.Unmarshal(text, &out))
}

// A service that is killed at any time has every update that it had answered, each once, when it comes back, and its
// posterior is that of a service that was not killed.
func TestOnlineKilled(t *testing.T) {
	dir := t.TempDir()
	x, y := stream(20, 1)
	p, posterior := exact(t, x, y, 200, 1)
	m, text := infertest.Exported(t, p, posterior)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.kelvin"), text, 0o644))
	rng := rand.New(rand.NewPCG(1, 1))
	update, kills := 0, 5
	if testkit.Slow {
		kills = 100
	}
	for round := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line := make([]byte, 64)
		n, err := out.Read(line)
		require.NoError(t, err)
		url := strings.TrimSpace(string(line[:n]))
		kill := time.AfterFunc(time.Hour, func() { _ = cmd.Process.Kill() })
		for first := true; ; first = false {
			if first == (round%2 == 0) { // before the first answer, or after each
				kill.Reset(time.Duration(rng.IntN(40)) * time.Millisecond)
			}
			got, err := posted(url, rowsAt(update), fmt.Sprint(update))
			if err != nil {
				break // the next service is asked again, with the same key
			}
			update++
			require.Equal(t, update, got)
		}
		kill.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	again, err := m.Online(filepath.Join(dir, "updates"), 5)
	require.NoError(t, err)
	t.Logf("%d kills, %d updates answered, %d kept", kills, update, at(again.Count()))
	require.GreaterOrEqual(t, at(again.Count()), update)
	require.LessOrEqual(t, at(again.Count()), update+1)
	require.NotZero(t, update)
	whole, err := m.Online("", 5)
	require.NoError(t, err)
	for k := range at(again.Count()) {
		require.NoError(t, whole.Update(context.Background(), 2, rowsAt(k)))
	}
	want, err := whole.Posterior()
	require.NoError(t, err)
	got, err := again.Posterior()
	require.NoError(t, err)
	for k := range want.Len(0) {
		require.Equal(t, want.Row(0, k), got.Row(0, k))
	}
	require.NoError(t, again.Close())
}

// Predictions follow updates, and a key is counted once.
func TestOnlineService(t *testing.T) {
	m, u := online(t, t.TempDir())
	service := serve.Service{Model: m, Online: u}
	h, err := service.Handler()
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	mean := func() float64 {
		r, err := http.Post(server.URL+"/predict", "application/json", strings.NewReader(`{"rows": [{"x": 1}]}`))
		require.NoError(t, err)
		defer r.Body.Close()
		var out struct {
			Predictions []map[string]struct{ Mean float64 }
		}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&out))
		return out.Predictions[0]["y"].Mean
	}
	before := mean()
	for range 2 {
		n, err := posted(server.URL, map[string][]float64{"x": {5, 5}, "y": {20, 20}}, "a")
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Equal(t, 2, second(u.Count()))
	x, y := stream(20, 1)
	want, precision := law(append(x, 5, 5), append(y, 20, 20))
	require.InDelta(t, want, mean(), 4*math.Sqrt((1+1/precision)/100)) // of 200 draws, half of which count
	require.Greater(t, mean(), before+1)
	_, err = posted(server.URL, map[string][]float64{"x": {5, 5}, "y": {20, 21}}, "a")
	require.ErrorContains(t, err, "status 409: {\"error\":\"serve.Update: key \\\"a\\\": other rows had this key")
	_, err = posted(server.URL, map[string][]float64{"x": {1}, "y": {math.MaxFloat64}}, "b")
	require.ErrorContains(t, err, "status 400: {\"error\":\"serve.Update: no draw makes the rows possible")
	r, err := http.Post(server.URL+"/update", "application/json", strings.NewReader(`{"rows": [{"x": 1}]}`))
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `no field \"y\"`)
}
