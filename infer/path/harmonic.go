package path

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Harmonic is a normal density without its normalizer, on unconstrained space, within walls or without:
//
//	h(x) = exp(−½ Σ k_i (x_i − m_i)²)  for Lower_i < x_i < Upper_i
//
// It is the reference of Baldock and Marzari (2019), equation 21. With walls the whole path is within them: the
// trajectories of package evidence bounce from them, and those of hmc.Exchange do with hmc.HMC.Bounce or are refused
// where they end outside. A program whose prior is uniform in a box on unconstrained space says nothing of the
// walls in its log prior, which is −Σ log of the widths.
type Harmonic struct {
	Mean         []float64 // m, of length d
	Precision    []float64 // k, of length d; at least 0, and positive where a wall is missing
	Lower, Upper []float64 // the walls; nil for none, else of length d, infinite ones allowed
}

func (h *Harmonic) check() error {
	d := len(h.Mean)
	bad := func(field string, value any, allowed string) error {
		return &infer.FieldError{Type: "path.Harmonic", Field: field, Value: value, Allowed: allowed}
	}
	if len(h.Precision) != d {
		return bad("Precision", fmt.Sprintf("of length %d", len(h.Precision)), fmt.Sprintf("the mean has %d elements", d))
	}
	for _, w := range []struct {
		name string
		wall []float64
	}{{"Lower", h.Lower}, {"Upper", h.Upper}} {
		if w.wall != nil && len(w.wall) != d {
			return bad(w.name, fmt.Sprintf("of length %d", len(w.wall)), fmt.Sprintf("it must be nil or have %d elements", d))
		}
	}
	for i, k := range h.Precision {
		lower, upper := h.walls(i)
		if m := h.Mean[i]; math.IsNaN(m) || math.IsInf(m, 0) {
			return bad(fmt.Sprintf("Mean[%d]", i), m, "it must be finite")
		}
		if !(lower < upper) {
			return bad(fmt.Sprintf("Lower[%d], Upper[%d]", i, i), fmt.Sprint(lower, upper), "the box must not be empty")
		}
		open := math.IsInf(lower, 0) || math.IsInf(upper, 0)
		if !(k >= 0) || math.IsInf(k, 0) || k == 0 && open {
			return bad(fmt.Sprintf("Precision[%d]", i), k, "it must be positive, or 0 between two walls")
		}
	}
	return nil
}

// walls are those of dimension i.
func (h *Harmonic) walls(i int) (lower, upper float64) {
	lower, upper = math.Inf(-1), math.Inf(1)
	if h.Lower != nil {
		lower = h.Lower[i]
	}
	if h.Upper != nil {
		upper = h.Upper[i]
	}
	return lower, upper
}

// LogZ is the logarithm of its integral,
//
//	Σ log ∫ exp(−k_i (x − m_i)²/2) dx = Σ ½ log (2π/k_i) + log (Φ(√k_i (b_i − m_i)) − Φ(√k_i (a_i − m_i)))
//
// from a_i = Lower_i to b_i = Upper_i. It is NaN where the fields do not fit each other.
func (h *Harmonic) LogZ() float64 {
	if h == nil || h.check() != nil {
		return math.NaN()
	}
	sum := 0.0
	for i, k := range h.Precision {
		a, b := h.walls(i)
		if k == 0 {
			sum += math.Log(b - a)
			continue
		}
		s := math.Sqrt(k)
		sum += 0.5*math.Log(2*math.Pi/k) + logBetween(s*(a-h.Mean[i]), s*(b-h.Mean[i]))
	}
	return sum
}

func (h *Harmonic) inside(x []float64) bool {
	for i, v := range x[:min(len(x), len(h.Mean))] {
		if lower, upper := h.walls(i); v < lower || v > upper {
			return false
		}
	}
	return true
}

// logDensity is log h at x, of shape [d].
func (h *Harmonic) logDensity(x torch.Tensor) torch.Tensor {
	m, k := torch.New(h.Mean), torch.New(h.Precision)
	device, dtype := torch.Must(torch.DeviceOf(x)), torch.Must(torch.DTypeOfTensor(x))
	m, k = torch.Must(torch.To(m, device, dtype)), torch.Must(torch.To(k, device, dtype))
	return x.Sub(m).Square().Mul(k).Sum().Mul(-0.5)
}

// draw draws n points; draw i reads stream (seed, first + i).
func (h *Harmonic) draw(n int, seed, first uint64) ([]float64, error) {
	d := len(h.Mean)
	s := torch.Streams{Seed: seed, Chains: make([]uint64, n)}
	for i := range s.Chains {
		s.Chains[i] = first + uint64(i)
	}
	var x []float64
	err := torch.Do(func(*torch.Scope) error {
		u, err := s.Uniform([]int{d}, torch.DTypeOf[float64](), torch.CPU)
		if err != nil {
			return err
		}
		x, err = torch.ToSlice[float64](u)
		return err
	})
	for j, u := range x {
		i := j % d
		a, b := h.walls(i)
		if k := h.Precision[i]; k == 0 {
			x[j] = a + (b-a)*u
		} else {
			s := math.Sqrt(k)
			z := quantileBetween(u, s*(a-h.Mean[i]), s*(b-h.Mean[i]))
			x[j] = math.Min(math.Max(h.Mean[i]+z/s, a), b)
		}
	}
	return x, err
}

// logBetween is log (Φ(b) − Φ(a)), a < b, without cancellation in the tails.
func logBetween(a, b float64) float64 {
	if a > 0 { // the mirror image has none
		a, b = -b, -a
	}
	upper, lower := logCDF(b), logCDF(a)
	return upper + math.Log1p(-math.Exp(lower-upper))
}

// logCDF is log Φ(x).
func logCDF(x float64) float64 {
	if x > -30 {
		return math.Log(0.5 * math.Erfc(-x/math.Sqrt2))
	}
	if math.IsInf(x, -1) {
		return x
	}
	y := 1 / (x * x) // Mills' ratio: the series has five digits of its first correction here
	return -0.5*x*x - 0.5*math.Log(2*math.Pi) - math.Log(-x) + math.Log1p(-y*(1-3*y*(1-5*y)))
}

// quantileBetween is the u-quantile of the standard normal law between a and b.
func quantileBetween(u, a, b float64) float64 {
	if a > 0 {
		return -quantileBetween(1-u, -b, -a)
	}
	low, high := math.Exp(logCDF(a)), math.Exp(logCDF(b))
	p := low + u*(high-low)
	if high > 1e-300 && p > 0 {
		if p < 0.5 {
			return math.Max(a, math.Min(b, -math.Sqrt2*math.Erfcinv(2*p)))
		}
		return math.Max(a, math.Min(b, math.Sqrt2*math.Erfinv(2*p-1)))
	}
	// Far in the left tail, where the law is exponential from b downwards.
	scale := -b
	t := -math.Expm1((a - b) * scale)
	return b + math.Log1p(-(1-u)*t)/scale
}

// Fit is the harmonic reference of draws on unconstrained space, x of n·d numbers: their mean, and 1/⟨(x_i − m_i)²⟩ as
// the precision (Baldock and Marzari 2019, section on thermodynamic integration). It has no walls; set them if there
// are. It needs two draws that differ in every dimension.
func Fit(x []float64, d int) (*Harmonic, error) {
	if d < 1 || len(x)%d != 0 || len(x) < 2*d {
		return nil, fmt.Errorf("path.Fit: %d numbers for %d dimensions: it needs two draws at least: %w", len(x), d,
			infer.ErrConfig)
	}
	n := len(x) / d
	h := &Harmonic{Mean: make([]float64, d), Precision: make([]float64, d)}
	for i := range d {
		for k := range n {
			h.Mean[i] += x[k*d+i] / float64(n)
		}
		square := 0.0
		for k := range n {
			delta := x[k*d+i] - h.Mean[i]
			square += delta * delta / float64(n)
		}
		if h.Precision[i] = 1 / square; !(square > 0) || math.IsInf(h.Precision[i], 0) || math.IsInf(square, 0) {
			return nil, fmt.Errorf("path.Fit: the draws of dimension %d have the variance %g: %w", i, square,
				infer.ErrNonFinite)
		}
	}
	return h, nil
}

// Box are the walls of the uniform prior of a network: element i of a site is within ± width/(2 √k), where k = fanIn of
// the site is the number of inputs of a unit, the bias included. In Baldock and Marzari (2019) the width is 100.
func Box(l *infer.Layout, width float64, fanIn map[string]int) (lower, upper []float64, err error) {
	if !(width > 0) || math.IsInf(width, 0) {
		return nil, nil, &infer.FieldError{Type: "path.Box", Field: "width", Value: width, Allowed: "it must be positive"}
	}
	if l == nil {
		return nil, nil, fmt.Errorf("path.Box: the layout is nil: %w", infer.ErrLayout)
	}
	for _, site := range l.Sites {
		k := fanIn[site.Name]
		if k < 1 {
			return nil, nil, fmt.Errorf("path.Box: the fan-in of site %q is %d: it must be at least 1: %w", site.Name, k,
				infer.ErrConfig)
		}
		half := 0.5 * width / math.Sqrt(float64(k))
		for range site.Size {
			lower, upper = append(lower, -half), append(upper, half)
		}
	}
	return lower, upper, nil
}
