package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// filter follows a and b by new data. The noise is the mean of the draws'.
type filter struct {
	transform infer.Transform
	layout    *infer.Layout
	noise     float64
	file      string

	mu   sync.Mutex
	last stored
}

// stored is the state as it is on disk: plain numbers, which JSON carries bit for bit.
type stored struct {
	Steps            int64
	Mean, Covariance []float64 // [2], [2, 2]
	Root             []float64 // [2, 2]
}

// newFilter starts from the state on disk, or from the mean and covariance of the draws where there is none.
func newFilter(d *draws.Draws, file string) (*filter, error) {
	f := &filter{file: file}
	var values [3][]float64
	for i, name := range []string{"a", "b", "s"} {
		site, err := d.Site(name)
		if err != nil {
			return nil, err
		}
		values[i] = d.Pooled(site.Offset)
	}
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	means := []float64{mean(values[0]), mean(values[1])}
	covariance := make([]float64, 4)
	for k := range values[0] {
		for i := range 2 {
			for j := range 2 {
				covariance[2*i+j] += (values[i][k] - means[i]) * (values[j][k] - means[j]) / float64(len(values[0])-1)
			}
		}
	}
	f.noise = mean(values[2])
	var err error
	if f.layout, err = infer.NewLayout(infer.Shapes{"w": {2}}); err != nil {
		return nil, err
	}
	start, err := torch.FromSlice(covariance, 2, 2)
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
		f.last = stored{Mean: means, Covariance: covariance}
		return f, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &f.last); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if l := f.last; len(l.Mean) != 2 || len(l.Covariance) != 4 || len(l.Root) != 4 {
		return nil, fmt.Errorf("%s has %d means, and matrices of %d and %d numbers: remove it to begin anew", file,
			len(l.Mean), len(l.Covariance), len(l.Root))
	}
	return f, nil
}

// observe updates the state with a datum. It is on disk when observe returns; where that fails nothing has changed.
func (f *filter) observe(x, y float64) (stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var next stored
	err := torch.Do(func(*torch.Scope) error {
		state, err := f.state()
		if err != nil {
			return err
		}
		design, err := torch.FromSlice([]float64{1, x}, 1, 2)
		if err != nil {
			return err
		}
		target, err := torch.FromSlice([]float64{y}, 1)
		if err != nil {
			return err
		}
		after, _, err := f.transform.Update(state, infer.Batch{"design": design, "y": target})
		if err != nil {
			return err
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
		return stored{}, err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return stored{}, err
	}
	if err := atomicfile.Replace(f.file, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return stored{}, err
	}
	f.last = next
	return next, nil
}

// state is the last one as tensors.
func (f *filter) state() (infer.State, error) {
	p, err := infer.NewParams(f.layout, f.last.Mean)
	if err != nil {
		return nil, err
	}
	s := ekf.DenseState{Params: p, Step: f.last.Steps}
	if s.Covariance, err = torch.FromSlice(f.last.Covariance, 2, 2); err == nil && f.last.Root != nil {
		s.Root, err = torch.FromSlice(f.last.Root, 2, 2)
	}
	return s, err
}

// predict is the mean and standard deviation of a datum at x.
func (f *filter) predict(x float64) (mean, sd float64, steps int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.last
	v := l.Covariance[0] + 2*x*l.Covariance[1] + x*x*l.Covariance[3] + f.noise*f.noise
	return l.Mean[0] + x*l.Mean[1], math.Sqrt(v), l.Steps
}
