package serve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// Online is the posterior of an exported model, updated by new rows of its data as they come: iterated batch importance
// sampling (Chopin 2002). Each exported draw is a particle with a weight, which rows multiply by their likelihood.
// Where the effective number of particles, (Σw)²/Σw², falls below half of them, rows enter in steps of a temperature
// that keep it there (Del Moral, Doucet and Jasra 2006); after each step particles are drawn by their weights, and
// moved by a chain that leaves the posterior so far as it is. So it is the posterior of all rows, to the error of so
// many draws, as long as the exported ones are dense where it goes.
//
// It is safe for concurrent use: updates come one after the other, and readers see the last one that is complete.
type Online struct {
	model   *Model
	seed    uint64
	now     atomic.Pointer[cloud]
	mu      sync.Mutex // of updates
	known   map[string]known
	journal *journal // nil for none
}

// known is an update that came with a key.
type known struct {
	of   [sha256.Size]byte // its rows
	made updated
}

// updated is what an update is told as.
type updated struct {
	Updates int     `json:"updates"`
	Rows    int     `json:"rows"`
	ESS     float64 `json:"ess"`
}

func (c *cloud) told() updated { return updated{c.updates, c.rows, sample.Effective(c.weights)} }

// errOtherRows is the error of a key that other rows had.
var errOtherRows = errors.New("other rows had this key")

// errFar is the error of rows to which no particles lead.
var errFar = errors.New("the rows are too far from the draws: fit all rows anew")

// cloud is a weighted sample, and what it is a sample of. It does not change.
type cloud struct {
	points, named       [][]float64 // of each particle: on unconstrained space, and all named values
	density, likelihood []float64   // log density by the model of the file, and of the rows since
	weights             []float64   // logarithms
	updates, rows       int
	data                map[string][]float64 // of these rows
	moved               bool                 // by the last update
}

// Online starts from the draws of the file. The seed is that of what updates draw. The error says why a model has no
// updates.
//
// Updates are kept in the folder dir, which is made where it is missing; none is kept where that is empty. An update is
// on disk before Update returns, and what opens the folder again goes on after the last one, with the same numbers. The
// folder is of one model file and seed, and of one process at a time; [Online.Close] gives it back.
func (m *Model) Online(dir string, seed uint64) (u *Online, err error) {
	defer wrap("Online", &err)
	if u, err = m.online(seed); err == nil && dir != "" {
		err = u.open(dir)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

func (m *Model) online(seed uint64) (u *Online, err error) {
	if m.file.Likelihood == nil || len(m.file.Points) == 0 {
		why := m.file.NoUpdate
		if why == "" {
			why = "there are no draws, or an earlier version has written it: ppl.Program.ExportFitted writes what it takes"
		}
		return nil, fmt.Errorf("the model was exported without updates: %s", why)
	}
	n := len(m.file.Points)
	c := &cloud{points: m.file.Points, likelihood: make([]float64, n), weights: make([]float64, n),
		data: map[string][]float64{}}
	u = &Online{model: m, seed: seed, known: map[string]known{}}
	if c.named, c.density, err = u.at(c.points); err == nil {
		u.now.Store(c)
	}
	return u, err
}

// evenly is how many particles are evaluated at once: the same for any number of processors.
const evenly = 64

// at are the named values and the log density by the model of the file at points.
func (u *Online) at(points [][]float64) (named [][]float64, density []float64, err error) {
	named, density = make([][]float64, len(points)), make([]float64, len(points))
	m := u.model
	err = parallel.Each((len(points)+evenly-1)/evenly, func(part int) error {
		grad := make([]float64, m.Dim())
		for k := part * evenly; k < min((part+1)*evenly, len(points)); k++ {
			density[k] = m.LogDensity(points[k], grad)
			row, aux := make([]float64, width(m.values)), make([][]float64, len(m.values))
			for i, s := range m.values {
				aux[i] = row[s.Offset : s.Offset+s.Size]
			}
			m.named.Eval(points[k], 1, grad, aux)
			named[k] = row
		}
		return nil
	})
	return named, density, err
}

// width is how many numbers sites have.
func width(sites []draws.Site) (n int) {
	for _, s := range sites {
		n += s.Size
	}
	return n
}

// likelihood is the sum of the log densities of rows, at each particle.
func (u *Online) likelihood(q *portable.Predictor, data map[string][]float64, named [][]float64) ([]float64, error) {
	var from []draws.Site
	for _, s := range u.model.file.Likelihood.Given {
		i := slices.IndexFunc(u.model.values, func(v draws.Site) bool { return v.Name == s.Name })
		from = append(from, u.model.values[i])
	}
	out := make([]float64, len(named))
	err := parallel.Each((len(named)+evenly-1)/evenly, func(part int) error {
		some := named[part*evenly : min((part+1)*evenly, len(named))]
		given := func(k int, to []float64) {
			for _, s := range from {
				to = to[copy(to, some[k][s.Offset:s.Offset+s.Size]):]
			}
		}
		return q.Draw(len(some), given, 0, 0, data, func(first, n int, all [][]float64) error {
			for _, values := range all {
				size := len(values) / n
				for k := range n {
					out[part*evenly+first+k] += floats.Sum(values[k*size : (k+1)*size])
				}
			}
			return nil
		})
	})
	for k, v := range out {
		if math.IsNaN(v) {
			out[k] = math.Inf(-1)
		}
	}
	return out, err
}

// Count is how many updates there were, and how many rows they had.
func (u *Online) Count() (updates, rows int) {
	c := u.now.Load()
	return c.updates, c.rows
}

// ESS is the effective number of particles, (Σw)²/Σw².
func (u *Online) ESS() float64 { return sample.Effective(u.now.Load().weights) }

// Posterior are draws of the posterior of all rows, as many as the file has, with its sites: particles drawn by their
// weights.
func (u *Online) Posterior() (*draws.Draws, error) { return u.posterior(u.now.Load()) }

func (u *Online) posterior(c *cloud) (out *draws.Draws, err error) {
	defer wrap("Posterior", &err)
	old := u.model.file.Draws
	if c.updates == 0 {
		return old, nil
	}
	sites := old.Sites()
	if out, err = draws.New(sites, nil, 1); err != nil {
		return nil, err
	}
	row := make([]float64, width(sites))
	for _, k := range sample.Systematic(sample.Softmax(c.weights), len(c.points), 0.5) {
		for _, s := range sites {
			i := slices.IndexFunc(u.model.values, func(v draws.Site) bool { return v.Name == s.Name })
			from := u.model.values[i]
			copy(row[s.Offset:s.Offset+s.Size], c.named[k][from.Offset:from.Offset+from.Size])
		}
		if err := out.AppendChain(0, row, nil); err != nil {
			return nil, err
		}
	}
	for name, v := range old.Attrs() {
		out.SetAttr(name, v)
	}
	out.SetAttr(draws.AttrMethod, "serve.Online")
	out.SetAttr("updates", fmt.Sprint(c.updates))
	out.SetAttr("new_rows", fmt.Sprint(c.rows))
	out.SetSpace(draws.Named)
	return out, nil
}

// Inputs are the data of so many rows, outcomes among them, that an update reads.
func (u *Online) Inputs(rows int) (sites []draws.Site, err error) {
	q, err := u.model.file.Likelihood.At(rows, evenly)
	if err != nil {
		return nil, fmt.Errorf("serve.Inputs: %w", err)
	}
	sites, _ = q.Inputs()
	return sites, nil
}

// Update takes new rows with their outcomes: the data that [Online.Inputs] names, in row-major order. After an error
// everything is as it was before. Rows to which no moves lead from the draws are an error.
func (u *Online) Update(ctx context.Context, rows int, data map[string][]float64) error {
	_, err := u.update(ctx, rows, data, "")
	return err
}

// update does not count rows again that come with the key of an earlier update.
func (u *Online) update(ctx context.Context, rows int, data map[string][]float64, key string) (made updated,
	err error) {
	defer wrap("Update", &err)
	u.mu.Lock()
	defer u.mu.Unlock()
	if data, err = u.ofRows(rows, data); err != nil {
		return made, err
	}
	if was, again := u.known[key]; again && key != "" {
		if was.of != fingerprint(data) {
			return made, fmt.Errorf("key %q: %w", key, errOtherRows)
		}
		return was.made, nil
	}
	c, err := u.after(ctx, u.now.Load(), rows, data)
	if err == nil {
		err = u.journal.add(entry{rows, key, data}, c)
	}
	if err != nil {
		return made, err
	}
	u.remember(key, data, c)
	u.now.Store(c)
	return c.told(), nil
}

func (u *Online) remember(key string, data map[string][]float64, c *cloud) {
	if key != "" {
		u.known[key] = known{fingerprint(data), c.told()}
	}
}

// fingerprint tells the data of rows apart.
func fingerprint(data map[string][]float64) [sha256.Size]byte {
	text, _ := json.Marshal(data) // finite numbers, sorted by name
	return sha256.Sum256(text)
}

// half is the share of particles below which the effective number does not fall.
const half = 0.5

// after is what a cloud becomes by new rows.
func (u *Online) after(ctx context.Context, c *cloud, rows int, data map[string][]float64) (*cloud, error) {
	out := *c
	out.updates, out.rows, out.moved, out.data = c.updates+1, c.rows+rows, false, c.with(data)
	w := &walk{u: u, c: &out, old: c, newData: data}
	w.rng = rand.New(rand.NewPCG(u.seed, uint64(out.updates)))
	var err error
	if w.fresh, err = u.model.file.Likelihood.At(rows, evenly); err != nil {
		return nil, err
	}
	if w.added, err = u.likelihood(w.fresh, w.newData, c.named); err != nil {
		return nil, err
	}
	switch most := floats.Max(weighted(c.weights, w.added, 1)); {
	case math.IsInf(most, -1):
		return nil, errors.New("no draw makes the rows possible: their log likelihood is -Inf at each")
	case !(math.Abs(floats.Max(w.added)) < mostLikelihood):
		return nil, fmt.Errorf("the largest log likelihood of the rows is %.3g, beside which no other row would count: %w",
			floats.Max(w.added), errFar)
	}
	for k := 0; w.temperature < 1; k++ {
		if k == mostSteps {
			return nil, fmt.Errorf("after %d steps of the temperature it is %.3g: %w", k, w.temperature, errFar)
		}
		next := step(out.weights, w.added, w.temperature)
		out.weights = weighted(out.weights, w.added, next-w.temperature)
		if w.temperature = next; next == 1 && sample.Effective(out.weights) >= half*float64(len(out.weights)) {
			break
		}
		if err := w.move(ctx); err != nil {
			return nil, err
		}
		out.moved = true
	}
	out.likelihood = slices.Clone(out.likelihood)
	floats.Add(out.likelihood, w.added)
	return &out, nil
}

const (
	// mostSteps is how many temperatures an update has.
	mostSteps = 200
	// mostLikelihood leaves the log likelihoods of other rows four digits.
	mostLikelihood = 1e12
)

// with is the data of all rows, with new ones. Updates come one after the other, so that arrays may be shared.
func (c *cloud) with(data map[string][]float64) map[string][]float64 {
	out := map[string][]float64{}
	for name, v := range data {
		out[name] = append(c.data[name], v...)
	}
	return out
}

// ofRows are the data of rows that updates read, with as many numbers as there must be.
func (u *Online) ofRows(rows int, data map[string][]float64) (map[string][]float64, error) {
	sites, err := u.Inputs(rows)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for _, s := range sites {
		v, ok := data[s.Name]
		switch {
		case !slices.Contains(u.model.file.Likelihood.Names, s.Name):
			continue // of the file
		case !ok:
			if of := u.model.rows(); s.Name == "y" && of != nil {
				return nil, fmt.Errorf("the rows have no outcome: give the columns %q too", of.Outcomes())
			}
			return nil, fmt.Errorf("the rows have no %q, of shape %v", s.Name, s.Shape)
		case len(v) != s.Size:
			return nil, fmt.Errorf("%d rows have %d numbers of %q, expected %d", rows, len(v), s.Name, s.Size)
		}
		for _, x := range v {
			if x-x != 0 {
				return nil, fmt.Errorf("the rows have a value of %q that is %v: an update takes finite numbers", s.Name, x)
			}
		}
		out[s.Name] = v
	}
	return out, nil
}

// weighted adds a share of log likelihoods to log weights.
func weighted(logw, likelihood []float64, share float64) []float64 {
	return floats.AddScaledTo(make([]float64, len(logw)), logw, share, likelihood)
}

// step is the highest temperature, 1 at most, at which the effective number of particles is at least half of them.
func step(logw, likelihood []float64, from float64) float64 {
	enough := func(to float64) bool {
		return sample.Effective(weighted(logw, likelihood, to-from)) >= half*float64(len(logw))
	}
	if enough(1) {
		return 1
	}
	by := (1 - from) / 2
	for k := 0; k < 1000 && !enough(from+by); k++ {
		by /= 2
	}
	for low, high := by, 2*by; high-low > 0.01*by; { // within the halving
		if by = (low + high) / 2; enough(from + by) {
			low = by
		} else {
			high = by
			by = low
		}
	}
	return math.Max(from+by, math.Nextafter(from, 1))
}
