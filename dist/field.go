package dist

import (
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Gaussian Markov random fields: normal distributions whose precision Q, of n rows, has few elements that are not 0.
// Where it is singular the support has sums of 0 and log det Q is that of the eigenvalues which are not 0.

// field is what all distributions of one field share. Its functions get the values of the parameters.
type field struct {
	family
	n         int
	pattern   *sparse.Pattern
	rank      float64
	squares   func(x torch.Tensor, p []torch.Tensor) torch.Tensor // xᵀ Q x for x of shape [..., n]
	logDet    func(p []torch.Tensor) torch.Tensor
	precision func(p []torch.Tensor) torch.Tensor // the values of Q, [..., elements of the pattern]
	variance  func(p []torch.Tensor) torch.Tensor // [..., n]
	draw      func(src *Source, shape []int, p []torch.Tensor) torch.Tensor
}

func newField(name string, n int, pattern *sparse.Pattern, on support.Support, rank float64,
	params ...parameter) *field {
	f := &field{family: family{name: name, support: on, params: params}, n: n, pattern: pattern, rank: rank}
	return f.made()
}

// made is the field, of which distributions can be made.
func (f *field) made() *field {
	f.of = func(b base) Distribution {
		b.event = []int{f.n}
		return fieldDist{b, f}
	}
	return f
}

// fields are those that a size alone tells. They are made once: models make their distributions in each evaluation.
var fields sync.Map

func fieldOf(key [3]int, make func() *field) *field {
	if f, ok := fields.Load(key); ok {
		return f.(*field)
	}
	f, _ := fields.LoadOrStore(key, make())
	return f.(*field)
}

var (
	betweenEnds = check{"it must be between 0 and 1", func(v float64) bool { return v > 0 && v < 1 }}
	dependence  = check{"it must be between -1 and 1", func(v float64) bool { return v > -1 && v < 1 }}
)

// fieldDist is a field with parameters.
type fieldDist struct {
	base
	field *field
}

// LogProb is the log density.
func (d fieldDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	f := d.field
	return d.full(f.squares(x, d.values).Sub(f.logDet(d.values)).Mul(-0.5).Sub(f.rank * halfLog2Pi))
}

// Sample draws vectors, reparameterised.
func (d fieldDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.field.draw(src, join(sample, d.batch, d.event), d.values)
}

// Mean is 0.
func (d fieldDist) Mean() torch.Tensor { return d.constantLike(0, d.values...) }

// Variance is that of each element.
func (d fieldDist) Variance() torch.Tensor { return d.spread(d.field.variance(d.values)) }

// Precision are the values of the precision, of shape batch + the elements of the pattern. Where it is singular its
// determinant on the support is known; else it is nil.
func (d fieldDist) Precision() (pattern *sparse.Pattern, values, logDet torch.Tensor) {
	f := d.field
	if f.rank < float64(f.n) {
		logDet = f.logDet(d.values)
	}
	return f.pattern, f.precision(d.values), logDet
}

// standard are standard normal numbers, of the type of the parameters.
func standard(src *Source, shape []int, p ...torch.Tensor) torch.Tensor {
	dtype, device := like(p...)
	return torch.Must(src.Normal(shape, dtype, device))
}

// elements takes elements of vectors.
func elements(x torch.Tensor, at []int64) torch.Tensor { return x.IndexSelect(-1, torch.New(at)) }

// mustBeDense panics where a matrix of all pairs would be too large.
func mustBeDense(family string, n int, what string) {
	if n > mostDense {
		panic(&Error{family, "", fmt.Sprintf("%s of %d elements", what, n), fmt.Sprintf("it is for at most %d; "+
			"ppl.MarginalLaplace integrates a larger field out", mostDense)})
	}
}

// Matern is a Gaussian field on a grid of rows x columns cells, row after row, by the stochastic differential equation
// whose solutions have Matérn's covariance of smoothness 1 (Lindgren, Rue and Lindström 2011): with L the Laplacian of
// the grid, κ = √8/range and τ² = 1/(4π κ² scale²),
//
//	x ~ N(0, Q⁻¹),  Q = τ² (κ² I + L)²
//
// so that far from the edges cells at a distance d have the covariance scale² κd K₁(κd): at range, in cells, a
// correlation of 0.14. It must be some cells for this to hold. At the edges, where the field is reflected, variances
// are larger: let the grid reach a range beyond the data. range > 0 and scale > 0 are numbers or tensors of the batch
// shape.
func Matern(rows, columns int, reach, scale any) (made Distribution) {
	defer orMisfit(&made)
	for name, v := range map[string]int{"rows": rows, "columns": columns} {
		if v < 2 {
			panic(&Error{"Matern", name, fmt.Sprint(v), "it must be at least 2"})
		}
	}
	return fieldOf([3]int{0, rows, columns}, func() *field { return maternField(rows, columns) }).with(reach, scale)
}

func maternField(rows, columns int) *field {
	n := rows * columns
	pattern, parts := maternMatrices(rows, columns)
	f := newField("Matern", n, pattern, support.Real.Independent(1), float64(n), parameter{"range", positive},
		parameter{"scale", positive})
	kappa2 := func(p []torch.Tensor) torch.Tensor { return p[0].Pow(-2).Mul(8) }
	tau2 := func(p []torch.Tensor) torch.Tensor { return kappa2(p).Mul(p[1].Square()).Mul(4 * math.Pi).Reciprocal() }
	f.squares = func(x torch.Tensor, p []torch.Tensor) torch.Tensor {
		y := x.Mul(wide(kappa2(p))).Add(gridLaplacian(x, rows, columns))
		return operand.SumLast(y.Square(), 1).Mul(tau2(p))
	}
	u, left := cosines(rows)
	v, right := cosines(columns)
	eigen := make([]float64, n)
	for i := range eigen {
		eigen[i] = left[i/columns] + right[i%columns]
	}
	root := func(p []torch.Tensor) torch.Tensor { return wide(kappa2(p)).Add(torch.New(eigen)) } // of Q's eigenvalues/τ²
	f.logDet = func(p []torch.Tensor) torch.Tensor {
		return operand.SumLast(root(p).Log(), 1).Mul(2).Add(tau2(p).Log().Mul(float64(n)))
	}
	f.precision = func(p []torch.Tensor) torch.Tensor {
		k, t := kappa2(p), tau2(p)
		return torch.New(parts[0]).Mul(wide(k.Square().Mul(t))).Add(torch.New(parts[1]).Mul(wide(k.Mul(t).Mul(2)))).
			Add(torch.New(parts[2]).Mul(wide(t)))
	}
	between := func(u, v []float64, x torch.Tensor) torch.Tensor { // U X Vᵀ
		shape := x.Shape()
		x = x.Reshape(append(shape[:len(shape)-1:len(shape)-1], rows, columns)...)
		x = torch.New(u, rows, rows).MatMul(x).MatMul(torch.New(v, columns, columns).Transpose())
		return x.Reshape(shape...)
	}
	f.variance = func(p []torch.Tensor) torch.Tensor {
		return between(squared(u), squared(v), root(p).Pow(-2).Div(wide(tau2(p))))
	}
	f.draw = func(src *Source, shape []int, p []torch.Tensor) torch.Tensor {
		z := standard(src, shape, p...)
		return between(u, v, z.Div(root(p)).Mul(wide(tau2(p).Pow(-0.5))))
	}
	return f
}

func squared(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * v
	}
	return out
}

// gridLaplacian is L x for x of shape [..., rows·columns]: of each cell the sum of its differences from its neighbours.
func gridLaplacian(x torch.Tensor, rows, columns int) torch.Tensor {
	shape := x.Shape()
	m := x.Reshape(append(shape[:len(shape)-1:len(shape)-1], rows, columns)...)
	part := func(dim, from, length int64) torch.Tensor {
		return torch.Of(m.T().MustNarrow(dim, from, length, false))
	}
	sum := m.Mul(4)
	for _, d := range []struct{ dim, size int64 }{{-2, int64(rows)}, {-1, int64(columns)}} {
		sum = sum.Sub(torch.Cat(int(d.dim), part(d.dim, 0, 1), part(d.dim, 0, d.size-1))).
			Sub(torch.Cat(int(d.dim), part(d.dim, 1, d.size-1), part(d.dim, d.size-1, 1)))
	}
	return sum.Reshape(shape...)
}

// cosines are the eigenvectors, as columns, and eigenvalues of the Laplacian of a path of n.
func cosines(n int) (vectors, values []float64) {
	vectors, values = make([]float64, n*n), make([]float64, n)
	for k := range n {
		values[k] = 2 - 2*math.Cos(math.Pi*float64(k)/float64(n))
		norm := math.Sqrt(2 / float64(n))
		if k == 0 {
			norm = math.Sqrt(1 / float64(n))
		}
		for i := range n {
			vectors[i*n+k] = norm * math.Cos(math.Pi*float64(k)*(float64(i)+0.5)/float64(n))
		}
	}
	return vectors, values
}

// maternMatrices are I, L and L² on the pattern of L².
func maternMatrices(rows, columns int) (*sparse.Pattern, [3][]float64) {
	n := rows * columns
	row := func(i int) map[int]float64 { // of L
		out := map[int]float64{}
		for _, j := range []int{i - columns, i + columns, i - 1, i + 1} {
			if j >= 0 && j < n && (j/columns == i/columns || j%columns == i%columns) {
				out[j]--
				out[i]++
			}
		}
		return out
	}
	type element struct {
		i, j int
		v    float64
	}
	var once, twice []element
	var at [][2]int
	for i := range n {
		for j, v := range row(i) {
			once = append(once, element{i, j, v})
			for k, w := range row(j) {
				twice = append(twice, element{i, k, v * w})
				at = append(at, [2]int{i, k})
			}
		}
	}
	pattern := sparse.NewPattern(n, at)
	var out [3][]float64
	for k := range out {
		out[k] = make([]float64, len(pattern.Row))
	}
	for i := range n {
		out[0][pattern.At(i, i)] = 1
	}
	for k, all := range [][]element{once, twice} {
		for _, e := range all {
			if e.i >= e.j {
				out[k+1][pattern.At(e.i, e.j)] += e.v
			}
		}
	}
	return pattern, out
}
