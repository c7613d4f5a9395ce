package curvature_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// vec is a float64 tensor; without a shape it is a vector.
func vec(data []float64, shape ...int) torch.Tensor {
	return torch.New(data, shape...)
}

// floats are the elements of a tensor, of gotch or not.
func floats(x any) []float64 { return torch.Of(x).Values() }

func shapeOf(x any) []int { return torch.Of(x).Shape() }

func total(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustSum(t.T().DType(), false)) }

func scaled(t torch.Tensor, c float64) torch.Tensor {
	return torch.Of(t.T().MustMulScalar(ts.FloatScalar(c), false))
}

// must is the values of a tensor that must have been made without an error.
func must(t testing.TB, x torch.Tensor, err error) []float64 {
	t.Helper()
	require.NoError(t, err)
	return floats(x)
}

// near asserts that two lists agree within tol times the largest number of the first, or times 1 where all are smaller.
func near(t testing.TB, want, got []float64, tol float64, what string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want), what, args)
	largest := 1.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= tol*largest) {
			t.Fatalf("%s: number %d is %v, want %v, which is off by %.2g of the largest, allowed %.2g",
				fmt.Sprintf(what, args...), i, got[i], want[i], math.Abs(want[i]-got[i])/largest, tol)
		}
	}
}

// numbers is a deterministic sequence without structure: n values in (-1, 1).
func numbers(n int, from float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := (from + float64(i) + 1) * 0.7861513777574233
		out[i] = 2*(x-math.Floor(x)) - 1
	}
	return out
}

func layoutOf(t testing.TB, shapes infer.Shapes) *infer.Layout {
	t.Helper()
	l, err := infer.NewLayout(shapes)
	require.NoError(t, err)
	return l
}

func pointOf(t testing.TB, l *infer.Layout, flat ...float64) infer.Params {
	t.Helper()
	p, err := infer.NewParams(l, flat)
	require.NoError(t, err)
	return p
}

// kind is a density of data given outputs of a shape, with its gradient-free version and its curvature in plain Go.
type kind struct {
	name  string
	shape []int                                    // of the outputs of a datum
	y     []int                                    // shape of the data of a datum
	label bool                                     // y counts classes, else it is a number
	outer curvature.Outer                          // in tensors
	logp  func(z, y []float64) float64             // the same in Go
	h     func(z, y []float64) (minus [][]float64) // −∂² log p/∂z²
}

func (k kind) c() int { return numel(k.shape) }

func numel(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func softmax(z []float64) []float64 {
	p, sum := make([]float64, len(z)), 0.0
	for i, v := range z {
		p[i] = math.Exp(v)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// softmaxes is categories over the last dimension of the outputs, independently for what is before.
func softmaxes(name string, shape ...int) kind {
	last := shape[len(shape)-1]
	return kind{name: name, shape: shape, y: shape[:len(shape)-1], label: true,
		outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
			l := z.T().MustLogSoftmax(-1, z.T().DType(), false).MustGather(-1,
				b.Get("y").T().MustTotype(gotch.Int64, false).MustUnsqueeze(-1, false), false, false)
			return torch.Of(l).Reshape(z.Shape()[0], -1).Sum(1)
		},
		logp: func(z, y []float64) float64 {
			l := 0.0
			for i := range y {
				l += math.Log(softmax(z[i*last : (i+1)*last])[int(y[i])])
			}
			return l
		},
		h: func(z, y []float64) [][]float64 {
			m := square(len(z))
			for i := range y {
				p := softmax(z[i*last : (i+1)*last])
				for a := range p {
					m[i*last+a][i*last+a] += p[a]
					for b := range p {
						m[i*last+a][i*last+b] -= p[a] * p[b]
					}
				}
			}
			return m
		}}
}

// bernoulli has outputs of shape [n]: one logit for each datum.
var bernoulli = kind{name: "bernoulli [n]", label: true,
	outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
		y := b.Get("y").T()
		return torch.Of(y).Mul(z).Add(z.Neg().LogSigmoid())
	},
	logp: func(z, y []float64) float64 { return y[0]*z[0] - math.Log1p(math.Exp(z[0])) },
	h: func(z, _ []float64) [][]float64 {
		p := 1 / (1 + math.Exp(-z[0]))
		return [][]float64{{p * (1 - p)}}
	}}

// coupled is a density that is not concave and couples the outputs: −log(1 + s²) for s = Σ_c a_c (y_c − z_c), a_c = 1 +
// c/2, minus Σ (y − z)⁴/4. Its curvature is indefinite for |s| > 1.
func coupled(name string, shape ...int) kind {
	return kind{name: name, shape: shape, y: shape,
		outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
			n := z.Shape()[0]
			r := b.Get("y").Sub(z).Reshape(n, -1).T()
			a := make([]float64, numel(shape))
			for c := range a {
				a[c] = 1 + float64(c)/2
			}
			s := r.MustMatmul(torch.Must(torch.To(vec(a), torch.CPU, z.T().DType())).T(), false)
			quartic := r.MustSquare(false).MustSquare(false).MustSumDimIntlist([]int64{1}, false, z.T().DType(), false)
			return torch.Of(s).Square().Log1p().Neg().Sub(torch.Of(quartic).Mul(0.25))
		},
		logp: func(z, y []float64) float64 {
			s, l := 0.0, 0.0
			for c := range z {
				s += (1 + float64(c)/2) * (y[c] - z[c])
				l -= math.Pow(y[c]-z[c], 4) / 4
			}
			return l - math.Log1p(s*s)
		},
		h: func(z, y []float64) [][]float64 {
			s := 0.0
			for c := range z {
				s += (1 + float64(c)/2) * (y[c] - z[c])
			}
			// (log(1 + s²))” = 2(1 − s²)/(1 + s²)²
			w := 2 * (1 - s*s) / ((1 + s*s) * (1 + s*s))
			m := square(len(z))
			for a := range z {
				m[a][a] = 3 * (y[a] - z[a]) * (y[a] - z[a])
				for b := range z {
					m[a][b] += w * (1 + float64(a)/2) * (1 + float64(b)/2)
				}
			}
			return m
		}}
}

// kinds have outputs of rank 1, 2 and 3.
var kinds = []kind{
	bernoulli,
	softmaxes("softmax [n, 3]", 3),
	coupled("coupled [n]"),
	coupled("coupled [n, 1]", 1),
	coupled("coupled [n, 3]", 3),
	softmaxes("softmaxes [n, 2, 3]", 2, 3),
	coupled("coupled [n, 2, 2]", 2, 2),
}

// network is a model with two layers and tanh between them, on n data: z = tanh(x A + a) B + b.
type network struct {
	kind
	in, hidden, n int
	x, y          []float64
	layout        *infer.Layout
	flat          []float64
}

func newNetwork(t testing.TB, k kind) network {
	m := network{kind: k, in: 2, hidden: 3, n: 7}
	m.x = numbers(m.n*m.in, 0)
	m.y = numbers(m.n*numel(k.y), 100)
	if k.label {
		classes := 2
		if len(k.shape) > 0 {
			classes = k.shape[len(k.shape)-1]
		}
		for i, v := range m.y {
			m.y[i] = math.Floor((v + 1) / 2 * float64(classes))
		}
	}
	m.layout = layoutOf(t, infer.Shapes{
		"A": {m.in, m.hidden}, "B": {m.hidden, m.c()}, "a": {m.hidden},
		"b": {m.c()},
	})
	m.flat = numbers(m.layout.Dim(), 50)
	return m
}

func (m network) point(t testing.TB) infer.Params { return pointOf(t, m.layout, m.flat...) }

func (m network) batch() infer.Batch {
	return infer.Batch{"x": vec(m.x, m.n, m.in), "y": vec(m.y, append([]int{m.n}, m.kind.y...)...)}
}

func (m network) forward(p infer.Params, b infer.Batch) torch.Tensor {
	h := b.Get("x").MatMul(p.Get("A")).Add(p.Get("a")).Tanh().T()
	z := h.MustMatmul(p.Get("B").T(), false).MustAdd(p.Get("b").T(), false)
	return torch.Of(z.MustReshape(torch.Int64s(append([]int{shapeOf(z)[0]}, m.kind.shape...)), false))
}

func (m network) density() curvature.PerDatum { return curvature.Likelihood(m.forward, m.outer) }

// logPosterior is the mean over data with prior N(0, I), summed over the batch.
func (m network) logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	prior := scaled(p.Flat.Dot(p.Flat), -0.5/float64(m.n))
	return m.density()(p, b).Mean().Add(prior), nil
}

// output is z_i in Go.
func (m network) output(flat []float64, i int) []float64 {
	part := map[string][]float64{}
	for _, s := range m.layout.Sites {
		part[s.Name] = flat[s.Offset : s.Offset+s.Size]
	}
	z := make([]float64, m.c())
	copy(z, part["b"])
	for h := range m.hidden {
		u := part["a"][h]
		for j := range m.in {
			u += m.x[i*m.in+j] * part["A"][j*m.hidden+h]
		}
		for c := range z {
			z[c] += math.Tanh(u) * part["B"][h*len(z)+c]
		}
	}
	return z
}

// datum is y_i.
func (m network) datum(i int) []float64 {
	k := numel(m.kind.y)
	return m.y[i*k : (i+1)*k]
}

func (m network) value(flat []float64, i int) float64 { return m.logp(m.output(flat, i), m.datum(i)) }

// posterior is the value of logPosterior in Go.
func (m network) posterior(flat []float64) float64 {
	v := 0.0
	for i := range m.n {
		v += m.value(flat, i)
	}
	for _, x := range flat {
		v -= x * x / 2
	}
	return v / float64(m.n)
}

// difference is the central difference of f in its j-th argument, of fourth order.
func difference(f func(x []float64) []float64, x []float64, j int) []float64 {
	const h = 1e-3
	at := func(by float64) []float64 {
		moved := append([]float64{}, x...)
		moved[j] += by
		return f(moved)
	}
	a, b, c, d := at(-2*h), at(-h), at(h), at(2*h)
	out := make([]float64, len(a))
	for i := range out {
		out[i] = (a[i] - 8*b[i] + 8*c[i] - d[i]) / (12 * h)
	}
	return out
}

// jacobian is J_i, [C][d], by central differences.
func (m network) jacobian(i int) [][]float64 {
	j := make([][]float64, m.c())
	for c := range j {
		j[c] = make([]float64, len(m.flat))
	}
	for k := range m.flat {
		for c, v := range difference(func(flat []float64) []float64 { return m.output(flat, i) }, m.flat, k) {
			j[c][k] = v
		}
	}
	return j
}

// gradients are the g_i, [n][d], by central differences.
func (m network) gradients() [][]float64 {
	g := make([][]float64, m.n)
	for i := range g {
		for k := range m.flat {
			g[i] = append(g[i], difference(func(flat []float64) []float64 { return []float64{m.value(flat, i)} }, m.flat, k)[0])
		}
	}
	return g
}

// outerSum is Σ_r left_r right_rᵀ, flat.
func outerSum(left, right [][]float64) []float64 {
	d := len(left[0])
	out := make([]float64, d*d)
	for r := range left {
		for i := range d {
			for j := range d {
				out[i*d+j] += left[r][i] * right[r][j]
			}
		}
	}
	return out
}

// ggn is Σ_i J_iᵀ H_i J_i, flat, with J by central differences and H in closed form.
func (m network) ggn() []float64 {
	var left, right [][]float64
	for i := range m.n {
		j, h := m.jacobian(i), m.h(m.output(m.flat, i), m.datum(i))
		for a := range j {
			for b := range j {
				row := make([]float64, len(m.flat))
				for k := range row {
					row[k] = h[a][b] * j[b][k]
				}
				left, right = append(left, j[a]), append(right, row)
			}
		}
	}
	return outerSum(left, right)
}

// diagonal is that of a flat matrix.
func diagonal(m []float64) []float64 {
	d := int(math.Sqrt(float64(len(m))))
	out := make([]float64, d)
	for i := range out {
		out[i] = m[i*d+i]
	}
	return out
}

// times is a flat matrix times a vector.
func times(m, v []float64) []float64 {
	out := make([]float64, len(m)/len(v))
	for i := range out {
		for j, x := range v {
			out[i] += m[i*len(v)+j] * x
		}
	}
	return out
}

func rows(flat []float64, d int) [][]float64 {
	var out [][]float64
	for ; len(flat) > 0; flat = flat[d:] {
		out = append(out, flat[:d])
	}
	return out
}

// split is a batch in parts of a size.
func split(b infer.Batch, size int) []infer.Batch {
	n := torch.Must(b.Size())
	var out []infer.Batch
	for from := 0; from < n; from += size {
		part := infer.Batch{}
		for name, x := range b {
			part[name] = torch.Of(x.T().MustNarrow(0, int64(from), int64(min(size, n-from)), false))
		}
		out = append(out, part)
	}
	return out
}

// in32 is a batch in float32.
func in32(b infer.Batch) infer.Batch {
	out := infer.Batch{}
	for name, x := range b {
		out[name] = torch.Must(torch.To(x, torch.CPU, gotch.Float))
	}
	return out
}

// options are several sizes of blocks for rows of 4·d numbers: one row, two and five at a time beside
// the result, and all.
func options(d int, result int) []curvature.Options {
	var out []curvature.Options
	for _, r := range []int{1, 2, 5} {
		out = append(out, curvature.Options{Memory: 8*(result+r*4*d) + 8*d})
	}
	return append(out, curvature.Options{})
}
