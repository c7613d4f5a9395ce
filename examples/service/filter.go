package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// filter follows the k coefficients, a and then w, by new data. The noise is the mean of the draws'.
type filter struct {
	transform infer.Transform
	layout    *infer.Layout
	columns   []string // of the design
	k         int
	noise     float64
	file      string

	mu   sync.Mutex
	last stored
}

// stored is the state as it is on disk: plain numbers, which JSON carries bit for bit.
type stored struct {
	Columns          []string // of the design: a and then these are the coefficients
	Steps            int
	Mean, Covariance []float64  // [k], [k, k]
	Root             []float64  // [k, k]
	Keys             []answered `json:",omitempty"` // the last ones, the newest at the end
	Check            string     // SHA-256 of the rest
}

// answered is an observation that came with a key: what a client that heard no answer sends again is not counted twice.
type answered struct {
	Key     string
	Sum     string // of its data, SHA-256
	Updates int    // the answer that it got
}

// mostKeys is how many keys are remembered: whoever tries again after so many other observations counts twice.
const mostKeys = 1000

// newFilter starts from the state on disk. If no file is there, it starts from the mean and covariance of the draws. A
// state of another design is an error. The columns are those of the design.
func newFilter(d *draws.Draws, columns []string, file string) (*filter, error) {
	f := &filter{file: file, columns: columns, k: 1 + len(columns)}
	var values [][]float64 // of a, of each of w, and of s
	for _, name := range []string{"a", "w", "s"} {
		site, err := d.Site(name)
		if err != nil {
			return nil, err
		}
		for i := range site.Size {
			values = append(values, d.Pooled(site.Offset+i))
		}
	}
	if len(values) != f.k+1 {
		return nil, fmt.Errorf("the draws have %d coefficients, and the design has %d columns: fit again", len(values)-2,
			len(columns))
	}
	means, covariance := make([]float64, f.k), make([]float64, f.k*f.k)
	for i := range f.k {
		means[i] = stat.Mean(values[i], nil)
		for j := range f.k {
			covariance[f.k*i+j] = stat.Covariance(values[i], values[j], nil)
		}
	}
	f.noise = stat.Mean(values[f.k], nil)
	var err error
	if f.layout, err = infer.NewLayout(infer.Shapes{"w": {f.k}}); err != nil {
		return nil, err
	}
	start, err := f.square(covariance)
	if err != nil {
		return nil, err
	}
	f.transform, err = ekf.GaussNewton{
		Forward: func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("design").MatMul(p.Get("w")) },
		Outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
			return b.Get("y").Sub(z).Div(f.noise).Square().Div(-2)
		},
		InitCov: start,
	}.Build(infer.Target{})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.last = stored{Columns: columns, Mean: means, Covariance: covariance}
		return f, nil
	case err != nil:
		return nil, err
	}
	if err := f.last.read(text); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to begin anew", file, err)
	}
	if !slices.Equal(f.last.Columns, columns) {
		return nil, fmt.Errorf("%s is of a design with the columns %q, and this one has %q: remove it to begin anew", file,
			f.last.Columns, columns)
	}
	if l := f.last; len(l.Mean) != f.k || len(l.Covariance) != f.k*f.k || len(l.Root) != f.k*f.k {
		return nil, fmt.Errorf("%s has %d means, and matrices of %d and %d numbers: remove it to begin anew", file,
			len(l.Mean), len(l.Covariance), len(l.Root))
	}
	return f, nil
}

// text is the state with its checksum, as it is written.
func (s *stored) text() ([]byte, error) {
	s.Check = ""
	bare, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(bare)
	s.Check = hex.EncodeToString(sum[:])
	return json.Marshal(s)
}

// read takes what text has written, and refuses anything else, and numbers that no filter has.
func (s *stored) read(text []byte) error {
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	again := *s
	if want, err := again.text(); err != nil || !bytes.Equal(want, text) {
		return errors.New("its checksum is another: the file is damaged, or was changed")
	}
	if s.Steps < 0 || s.Steps == math.MaxInt64 || len(s.Keys) > mostKeys {
		return fmt.Errorf("it has %d updates and %d keys", s.Steps, len(s.Keys))
	}
	for i, k := 0, len(s.Mean); i < k && len(s.Covariance) == k*k; i++ {
		if v := s.Covariance[k*i+i]; !(v > 0) {
			return fmt.Errorf("the variance of coefficient %d is %v", i, v)
		}
	}
	return nil
}

// square is a matrix of k rows.
func (f *filter) square(values []float64) (torch.Tensor, error) {
	return torch.FromSlice(values, f.k, f.k)
}

// errNotFinite is the error of data that are too large to be computed with. Nothing has changed then.
var errNotFinite = errors.New("the numbers are too large: what follows from them is not finite")

// errOtherData is the error of a key that comes back with other data.
var errOtherData = errors.New("the key was given to other data: a new observation needs a new one")

// observe updates the state with data, [n][p] and [n], and returns the number of updates. It is on disk when observe
// returns; where that fails nothing has changed. Data whose key is remembered change nothing, and get the answer that
// they had; an empty key is none.
func (f *filter) observe(key string, x [][]float64, y []float64) (updates int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := stored{Columns: f.columns, Keys: f.last.Keys}
	sum, err := checksum(x, y)
	if err != nil {
		return 0, err
	}
	if key != "" {
		if i := slices.IndexFunc(f.last.Keys, func(a answered) bool { return a.Key == key }); i >= 0 {
			if f.last.Keys[i].Sum != sum {
				return 0, errOtherData
			}
			return f.last.Keys[i].Updates, nil
		}
	}
	err = torch.Do(func(*torch.Scope) error {
		state := torch.Must(f.state())
		var flat []float64
		for _, row := range x {
			flat = append(append(flat, 1), row...)
		}
		design := torch.New(flat, len(x), f.k)
		target := torch.New(y)
		after, info, err := f.transform.Update(state, infer.Batch{"design": design, "y": target})
		if err != nil {
			return err
		}
		if slices.Contains(info.Diverged, true) {
			return errNotFinite
		}
		saved := after.Save()
		next.Steps = saved.Steps
		for name, into := range map[string]*[]float64{"params": &next.Mean, "covariance": &next.Covariance,
			"root": &next.Root} {
			t, err := saved.Tensor(name)
			if err != nil {
				return err
			}
			if *into, err = torch.ToSlice[float64](t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if key != "" {
		keys := f.last.Keys[max(0, len(f.last.Keys)-mostKeys+1):]
		next.Keys = append(slices.Clone(keys), answered{Key: key, Sum: sum, Updates: next.Steps})
	}
	text, err := next.text()
	if err != nil {
		return 0, err
	}
	if err := atomicfile.Write(f.file, text, 0o644); err != nil {
		return 0, err
	}
	f.last = next
	return next.Steps, nil
}

// checksum tells data apart.
func checksum(x [][]float64, y []float64) (string, error) {
	text, err := json.Marshal([]any{x, y})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// state is the last one as tensors.
func (f *filter) state() (infer.State, error) {
	p, err := infer.NewParams(f.layout, f.last.Mean)
	if err != nil {
		return nil, err
	}
	s := ekf.DenseState{Params: p, Step: f.last.Steps}
	if s.Covariance, err = f.square(f.last.Covariance); err == nil && f.last.Root != nil {
		s.Root, err = f.square(f.last.Root)
	}
	return s, err
}

// predict are the predictions of data at rows of x.
func (f *filter) predict(x [][]float64) (out []prediction, steps int) {
	f.mu.Lock()
	l := f.last
	f.mu.Unlock()
	for _, row := range x {
		h := append([]float64{1}, row...)
		mean, variance := floats.Dot(h, l.Mean), f.noise*f.noise
		for i := range h {
			variance += h[i] * floats.Dot(h, l.Covariance[f.k*i:f.k*(i+1)])
		}
		half := 1.96 * math.Sqrt(variance)
		out = append(out, prediction{mean, mean - half, mean + half})
	}
	return out, l.Steps
}
