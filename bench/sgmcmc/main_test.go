package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
)

// The program runs, and every sampler is in both forms of its output at every size.
func TestQuick(t *testing.T) {
	var table, object bytes.Buffer
	if err := measure(&table, false, true, false, true, 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := measure(&object, true, true, false, false, 1, ""); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(object.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2*len(samplers) {
		t.Errorf("%d rows for %d samplers at 2 sizes", len(r.Rows), len(samplers))
	}
	lines := strings.Split(table.String(), "\n")
	for i, row := range r.Rows {
		if want := samplers[i%len(samplers)].name; row.Sampler != want || !strings.Contains(lines[4+i], want) {
			t.Errorf("row %d is %q in the object and %q in the table, want %q", i, row.Sampler, lines[4+i], want)
		}
		if !(row.Updates > 0 && row.Bound > 0 && row.Ratio > 0 && row.Quartiles[0] <= row.Ratio &&
			row.Ratio <= row.Quartiles[1]) || row.Rounds < 3 {
			t.Errorf("row %d: %+v", i, row)
		}
	}
}

// An update of each sampler evaluates the density once and moves its streams by what one draw of d numbers moves them,
// (d+3)/4 positions in float32. So does the bound, which leaves the sampler where it is.
func TestBoundDoesAsMuch(t *testing.T) {
	for _, z := range []size{{7, 1}, {7, 3}} {
		target, err := newTarget(z)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samplers {
			p, err := target.pair(s)
			if err != nil {
				t.Fatal(err)
			}
			const n = 5
			drawn := func() uint64 { return p.state.Save().Streams.Offset }
			for _, side := range []struct {
				name   string
				call   func() error
				offset func() uint64
				steps  int
			}{{"update", p.update, drawn, n}, {"bound", p.bound, func() uint64 { return p.streams.Offset }, n}} {
				evaluations, offset := target.evaluations, side.offset()
				for range n {
					if err := side.call(); err != nil {
						t.Fatal(err)
					}
				}
				if got := target.evaluations - evaluations; got != n {
					t.Errorf("%s of %s, %v: %d evaluations in %d calls", side.name, s.name, z, got, n)
				}
				if got := side.offset() - offset; got != n*2 {
					t.Errorf("%s of %s, %v: %d positions drawn in %d calls, want %d", side.name, s.name, z, got, n, n*2)
				}
				if got := p.state.Steps(); got != side.steps {
					t.Errorf("%s of %s, %v: at step %d, want %d", side.name, s.name, z, got, side.steps)
				}
			}
			p.free()
		}
	}
}

// With libtorch's noise the bound evaluates once too, and leaves the streams where they are.
func TestBoundOfLibtorch(t *testing.T) {
	target, err := newTarget(size{7, 3})
	if err != nil {
		t.Fatal(err)
	}
	target.libtorch = true
	p, err := target.pair(samplers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer p.free()
	evaluations, offset := target.evaluations, p.streams.Offset
	if err := p.bound(); err != nil {
		t.Fatal(err)
	}
	if target.evaluations != evaluations+1 || p.streams.Offset != offset {
		t.Errorf("%d evaluations, the streams at %d and before at %d", target.evaluations-evaluations, p.streams.Offset,
			offset)
	}
}

// The gradient is that of −½Σλθ², with λ in [1/2, 3/2].
func TestTarget(t *testing.T) {
	target, err := newTarget(size{7, 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := target.pair(samplers[0])
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.gradient.ValueAndGrad(target.start, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	theta, halved := torch.Must(target.start.Values()), torch.Must(torch.ToSlice[float64](target.halved))
	grad := torch.Must(torch.ToSlice[float64](e.Grad))
	for k := range 3 {
		value := 0.0
		for i, h := range halved {
			if lambda := -2 * h; !(lambda >= 0.5 && lambda <= 1.5) {
				t.Errorf("λ is %g", lambda)
			}
			x := theta[7*k+i]
			value += h * x * x
			if want := 2 * h * x; math.Abs(grad[7*k+i]-want) > 1e-6*math.Abs(want) {
				t.Errorf("gradient %d of chain %d is %g, want %g", i, k, grad[7*k+i], want)
			}
		}
		if math.Abs(e.Values[k]-value) > 1e-5*math.Abs(value) {
			t.Errorf("density of chain %d is %g, want %g", k, e.Values[k], value)
		}
	}
}

// Every sampler stays where it can be measured: after 300 updates no chain is held and no parameter is beyond 20, at
// variances of about 1/λ.
func TestStays(t *testing.T) {
	target, err := newTarget(size{7, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samplers {
		p, err := target.pair(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			if err := p.update(); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range torch.Must(p.state.Position().Values()) {
			if !(math.Abs(v) < 20) {
				t.Errorf("%s: a parameter is %g after 300 updates", s.name, v)
			}
		}
		p.free()
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		dim   int
		ratio float64
		want  string
	}{{10, 1, "-"}, {10, 2, "-"}, {10_000, 1.2, "met"}, {10_000, 1.21, "missed"}} {
		if got := (row{Dim: c.dim, Ratio: c.ratio}).verdict(); got != c.want {
			t.Errorf("d = %d, ratio %g: %q, want %q", c.dim, c.ratio, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		only    string
		want    string
	}{{0, "", "-seconds 0: it must be greater than 0"}, {math.NaN(), "", "-seconds NaN"}, {1, "none", `-only "none"`}} {
		if err := measure(&bytes.Buffer{}, false, true, false, false, c.seconds, c.only); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
