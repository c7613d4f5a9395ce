package dist

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
)

// Graph says which of n areas are neighbours, for random effects of a map. Its methods are distributions of a number
// for each area. Make one before the model, and use it in all runs: what it is asked for is computed once.
type Graph struct {
	Neighbours [][]int // of each area, numbered from 0: each lists the other, and none itself

	once    sync.Once
	wrong   *Error
	areas   areas
	reduced sync.Once
	draw    []float64 // n x n: rows of standard normal numbers times it are draws of the ICAR of scale 1
	solved  sync.Once
	values  []float64 // eigenvalues of D^-½ W D^-½
	vectors []float64 // n x n
}

// areas is what a graph is made of.
type areas struct {
	pattern  *sparse.Pattern
	from, to []int64 // the ends of each pair of neighbours
	degree   []float64
	groups   []int   // the connected part of each area; −1 for one without neighbours
	alone    []int64 // the areas without neighbours
	parts    int     // connected ones of two areas and more
	logDet   float64 // of the Laplacian in the space of its draws
	variance []float64
	scale    []float64 // of each area: what makes the geometric mean of the variances of its part 1
	icar     *field    // see ICAR
	bym2     *field    // see BYM2
	car      *field    // see CAR
	pinned   *sparse.Factor
}

// mostDense is how many areas a matrix of all pairs of them is made for.
const mostDense = 4096

// known checks the graph and finds what is made of it.
func (g *Graph) known(family string) *areas {
	if g == nil {
		panic(&Error{family, "Neighbours", "nil", "a graph is required: &dist.Graph{Neighbours: ...}"})
	}
	g.once.Do(func() {
		if g.wrong = g.check(); g.wrong == nil {
			g.analyse()
		}
	})
	if g.wrong != nil {
		wrong := *g.wrong
		wrong.Distribution = family
		panic(&wrong)
	}
	return &g.areas
}

// check finds the first mistake in the neighbours.
func (g *Graph) check() *Error {
	fail := func(area int, value, allowed string) *Error {
		return &Error{"Graph", fmt.Sprintf("Neighbours[%d]", area), value, allowed}
	}
	n := len(g.Neighbours)
	if n < 2 {
		return &Error{"Graph", "Neighbours", fmt.Sprintf("of length %d", n), "at least 2 areas are required"}
	}
	for i, all := range g.Neighbours {
		seen := map[int]bool{}
		for _, j := range all {
			switch {
			case j < 0 || j >= n:
				return fail(i, fmt.Sprint(all), fmt.Sprintf("area %d is not among the %d, which are numbered from 0", j, n))
			case j == i:
				return fail(i, fmt.Sprint(all), "an area is no neighbour of itself")
			case seen[j]:
				return fail(i, fmt.Sprint(all), fmt.Sprintf("area %d is there twice", j))
			case !slices.Contains(g.Neighbours[j], i):
				return fail(i, fmt.Sprint(all), fmt.Sprintf("area %d is there, and area %d does not list area %d: neighbours "+
					"are so both ways", j, j, i))
			}
			seen[j] = true
		}
	}
	return nil
}

// analyse finds the connected parts, and the determinant and variances of the Laplacian on vectors whose sums over the
// parts are 0. With an area j of each part pinned, A = R + Σ eⱼeⱼᵀ, these are those of P A⁻¹ P, P = I − 1·1ᵀ/m in each
// part of m areas, and det R = m det A there, by the matrix-tree theorem.
func (g *Graph) analyse() {
	a, n := &g.areas, len(g.Neighbours)
	a.groups, a.degree = make([]int, n), make([]float64, n)
	var at [][2]int
	for i, all := range g.Neighbours {
		a.groups[i] = -1
		a.degree[i] = float64(len(all))
		if len(all) == 0 {
			a.alone = append(a.alone, int64(i))
		}
		for _, j := range all {
			if j > i {
				at = append(at, [2]int{i, j})
				a.from, a.to = append(a.from, int64(i)), append(a.to, int64(j))
			}
		}
	}
	a.pattern = sparse.NewPattern(n, at)
	values := a.laplacian(nil)
	var sizes []float64
	for i := range n {
		if a.groups[i] >= 0 || len(g.Neighbours[i]) == 0 {
			continue
		}
		part := []int{i}
		a.groups[i] = a.parts
		for k := 0; k < len(part); k++ {
			for _, j := range g.Neighbours[part[k]] {
				if a.groups[j] < 0 {
					a.groups[j] = a.parts
					part = append(part, j)
				}
			}
		}
		values[a.pattern.Start[i]]++ // pinned
		sizes = append(sizes, float64(len(part)))
		a.logDet += math.Log(float64(len(part)))
		a.parts++
	}
	a.pinned = a.pattern.Analyse().Factor(values)
	a.logDet += a.pinned.LogDet()
	a.moments(sizes)
	a.icar, a.bym2, a.car = g.icarField(), g.bym2Field(), g.carField()
}

// moments are the variances of the areas, and their geometric mean in each part, 1/scale.
func (a *areas) moments(sizes []float64) {
	n := a.pattern.N
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	rows, inverse := a.pinned.Solve(ones, ones), a.pinned.Inverse(make([]float64, len(a.pattern.Row)))
	all, logs := make([]float64, a.parts), make([]float64, a.parts)
	for i, g := range a.groups {
		if g >= 0 {
			all[g] += rows[i]
		}
	}
	a.variance, a.scale = make([]float64, n), make([]float64, n)
	for i, g := range a.groups {
		a.variance[i] = inverse[a.pattern.Start[i]]
		if g >= 0 {
			a.variance[i] += all[g]/(sizes[g]*sizes[g]) - 2*rows[i]/sizes[g]
			logs[g] += math.Log(a.variance[i]) / sizes[g]
		}
	}
	for i, g := range a.groups {
		if a.scale[i] = 1; g >= 0 {
			a.scale[i] = math.Exp(logs[g])
		}
	}
}

// laplacian are the values of R: the number of neighbours on the diagonal and −1 for each of them, with 1 for an area
// without, all times by.
func (a *areas) laplacian(by []float64) []float64 {
	values := make([]float64, len(a.pattern.Row))
	for j := range a.pattern.N {
		c := 1.0
		if by != nil {
			c = by[j]
		}
		for k := a.pattern.Start[j]; k < a.pattern.Start[j+1]; k++ {
			values[k] = -c
		}
		values[a.pattern.Start[j]] = c * max(a.degree[j], 1)
	}
	return values
}

// squares is xᵀ diag(by) R x, for x of shape [..., n]: the differences of neighbours, and areas without.
func (a *areas) squares(x torch.Tensor, by []float64) torch.Tensor {
	weights := func(of []int64) torch.Tensor {
		w := make([]float64, len(of))
		for k, i := range of {
			if w[k] = 1; by != nil {
				w[k] = by[i]
			}
		}
		return torch.New(w)
	}
	sum := elements(x, a.from).Sub(elements(x, a.to)).Square().MatMul(weights(a.from))
	if len(a.alone) > 0 {
		sum = sum.Add(elements(x, a.alone).Square().MatMul(weights(a.alone)))
	}
	return sum
}

// support is where the fields are: the sums of the connected parts are 0, after free elements.
func (a *areas) support(free int) support.Support {
	s := support.ZeroSum
	if free > 0 || a.parts != 1 || len(a.alone) > 0 {
		groups := slices.Concat(slices.Repeat([]int{-1}, free), a.groups)
		s.Groups = &groups
	}
	if a.parts == 0 {
		return support.Real.Independent(1)
	}
	return s
}

// drawn are draws of the ICAR of scale 1.
func (g *Graph) drawn(family string, src *Source, shape []int, p ...torch.Tensor) torch.Tensor {
	a := &g.areas
	n := a.pattern.N
	mustBeDense(family, n, "draws")
	g.reduced.Do(func() {
		g.draw = make([]float64, 0, n*n)
		e := make([]float64, n)
		sums := make([]float64, a.parts)
		counts := make([]float64, a.parts)
		for _, p := range a.groups {
			if p >= 0 {
				counts[p]++
			}
		}
		for k := range n {
			e[k] = 1
			x := a.pinned.Draw(e)
			e[k] = 0
			clear(sums)
			for i, p := range a.groups {
				if p >= 0 {
					sums[p] += x[i]
				}
			}
			for i, p := range a.groups {
				if p >= 0 {
					x[i] -= sums[p] / counts[p]
				}
			}
			g.draw = append(g.draw, x...)
		}
	})
	return standard(src, shape, p...).MatMul(torch.New(g.draw, n, n))
}

// eigen are the eigenvalues and vectors of D^-½ W D^-½, W the neighbours and D their numbers.
func (g *Graph) eigen() (values, vectors []float64) {
	g.solved.Do(func() {
		n := len(g.Neighbours)
		w := mat.NewSymDense(n, nil)
		for i, all := range g.Neighbours {
			for _, j := range all {
				w.SetSym(i, j, 1/math.Sqrt(g.areas.degree[i]*g.areas.degree[j]))
			}
		}
		var e mat.EigenSym
		e.Factorize(w, true)
		var v mat.Dense
		e.VectorsTo(&v)
		g.values, g.vectors = e.Values(nil), v.RawMatrix().Data
	})
	return g.values, g.vectors
}

// ICAR is the intrinsic conditional autoregression of scale > 0, a number or a tensor of the batch shape (Besag, York
// and Mollié 1991): with R the graph's Laplacian, on vectors whose sum over each connected part of the graph is 0,
//
//	log p(x) = −Σ (xᵢ − xⱼ)²/(2 scale²) + (log det R − r log 2π)/2 − r log scale
//
// over pairs of neighbours, r = n less the number of parts and det R the product of its r eigenvalues that are not 0.
// An area without neighbours is Normal(0, scale) (Freni-Sterrantino, Ventrucci and Rue 2018). A mistake in the graph is
// one of the distribution. LogProb does not read the sums. Of more than 4096 areas there are no draws.
func (g *Graph) ICAR(scale any) (made Distribution) {
	defer orMisfit(&made)
	return g.known("ICAR").icar.with(scale)
}

func (g *Graph) icarField() *field {
	a := &g.areas
	n := a.pattern.N
	rank := float64(n - a.parts)
	f := newField("ICAR", n, a.pattern, a.support(0), rank, parameter{"scale", positive})
	f.draw = func(src *Source, shape []int, p []torch.Tensor) torch.Tensor {
		return g.drawn("ICAR", src, shape, p[0]).Mul(wide(p[0]))
	}
	f.squares = func(x torch.Tensor, p []torch.Tensor) torch.Tensor { return a.squares(x.Div(wide(p[0])), nil) }
	f.logDet = func(p []torch.Tensor) torch.Tensor { return p[0].Log().Mul(-2 * rank).Add(a.logDet) }
	f.precision = func(p []torch.Tensor) torch.Tensor {
		return torch.New(a.laplacian(nil)).Mul(wide(p[0].Pow(-2)))
	}
	f.variance = func(p []torch.Tensor) torch.Tensor { return torch.New(a.variance).Mul(wide(p[0].Square())) }
	return f
}

// BYM2 are the random effects of a map with a part that neighbours share (Riebler, Sørbye, Simpson and Rue 2016): of
// their scale > 0, and of the share rho of their variance that is spatial, between 0 and 1. A value has 2n elements,
// the n effects x and then the n of the spatial part u, an ICAR that is scaled so that in each connected part of the
// graph the geometric mean of its variances is 1:
//
//	u ~ ICAR/√s,  x ~ N(scale √rho u, scale² (1 − rho))
//
// so that scale is that of an effect and rho means the same on each map. x.Slice(0, 0, n) are the effects.
func (g *Graph) BYM2(scale, rho any) (made Distribution) {
	defer orMisfit(&made)
	return g.known("BYM2").bym2.with(scale, rho)
}

func (g *Graph) bym2Field() *field {
	a := &g.areas
	n := a.pattern.N
	at := make([][2]int, 0, n+len(a.pattern.Row))
	for j := range n {
		at = append(at, [2]int{n + j, j})
		for k := a.pattern.Start[j]; k < a.pattern.Start[j+1]; k++ {
			at = append(at, [2]int{n + j, n + a.pattern.Row[k]})
		}
	}
	f := newField("BYM2", 2*n, sparse.NewPattern(2*n, at), a.support(n), float64(2*n-a.parts),
		parameter{"scale", positive}, parameter{"rho", betweenEnds})
	shrink := make([]float64, n)
	for i, s := range a.scale {
		shrink[i] = 1 / math.Sqrt(s)
	}
	f.draw = func(src *Source, shape []int, p []torch.Tensor) torch.Tensor {
		shape[len(shape)-1] = n
		u := g.drawn("BYM2", src, shape, p...).Mul(torch.New(shrink))
		own := standard(src, shape, p...).Mul(wide(p[1].Neg().Add(1).Sqrt()))
		x := u.Mul(wide(p[1].Sqrt())).Add(own).Mul(wide(p[0]))
		return torch.Cat(-1, x, u)
	}
	logDet := a.logDet
	for i, s := range a.scale {
		logDet += math.Log(s)
		if i = a.groups[i]; i >= 0 {
			sizes := 0.0
			for _, p := range a.groups {
				if p == i {
					sizes++
				}
			}
			logDet -= math.Log(s) / sizes // of m elements of a part m − 1 count
		}
	}
	f.squares = func(x torch.Tensor, p []torch.Tensor) torch.Tensor {
		u := torch.Of(x.T().MustNarrow(-1, int64(n), int64(n), false))
		rest := torch.Of(x.T().MustNarrow(-1, 0, int64(n), false)).Div(wide(p[0])).Sub(u.Mul(wide(p[1].Sqrt())))
		own := rest.Square().T()
		return torch.Of(own.MustSumDimIntlist([]int64{-1}, false, own.DType(), false)).Div(p[1].Neg().Add(1)).
			Add(a.squares(u, a.scale))
	}
	f.logDet = func(p []torch.Tensor) torch.Tensor {
		return p[0].Log().Mul(2).Add(p[1].Neg().Log1p()).Mul(-float64(n)).Add(logDet)
	}
	f.precision = a.bym2Precision(f.pattern)
	f.variance = func(p []torch.Tensor) torch.Tensor {
		u := make([]float64, n)
		for i := range u {
			u[i] = a.variance[i] / a.scale[i]
		}
		spatial := torch.New(u)
		x := spatial.Sub(1).Mul(wide(p[1])).Add(1).Mul(wide(p[0].Square()))
		return torch.Cat(-1, x, expandTo(spatial, x.Shape()))
	}
	return f
}

// bym2Precision are the values of the precision of (x, u): with c = 1/(1 − rho), c/scale² for x, −c √rho/scale between
// x and u, and s R + c rho for u.
func (a *areas) bym2Precision(p *sparse.Pattern) func([]torch.Tensor) torch.Tensor {
	n := a.pattern.N
	own, across, spatial, laplacian := make([]float64, len(p.Row)), make([]float64, len(p.Row)),
		make([]float64, len(p.Row)), make([]float64, len(p.Row))
	values := a.laplacian(a.scale)
	for j := range n {
		own[p.At(j, j)], across[p.At(n+j, j)], spatial[p.At(n+j, n+j)] = 1, 1, 1
		for k := a.pattern.Start[j]; k < a.pattern.Start[j+1]; k++ {
			laplacian[p.At(n+a.pattern.Row[k], n+j)] = values[k]
		}
	}
	return func(params []torch.Tensor) torch.Tensor {
		scale, rho := params[0], params[1]
		c := rho.Neg().Add(1).Reciprocal()
		return torch.New(own).Mul(wide(c.Div(scale.Square()))).Sub(torch.New(across).Mul(wide(c.Mul(rho.Sqrt()).Div(scale)))).
			Add(torch.New(spatial).Mul(wide(c.Mul(rho)))).Add(torch.New(laplacian))
	}
}

// CAR is the proper conditional autoregression (Besag 1974) of scale > 0 with the dependence alpha between −1 and 1: x
// given the others is normal, its mean alpha times that of the dᵢ neighbours, its variance scale²/dᵢ,
//
//	x ~ N(0, scale² (D − alpha W)⁻¹)
//
// where W says who are neighbours. Each area must have one. The density of more than 4096 areas, which needs all
// eigenvalues of the graph, and draws of them, are errors: ppl.MarginalLaplace integrates such a field out.
func (g *Graph) CAR(alpha, scale any) (made Distribution) {
	defer orMisfit(&made)
	a := g.known("CAR")
	if len(a.alone) > 0 {
		panic(&Error{"CAR", fmt.Sprintf("Neighbours[%d]", a.alone[0]), "empty", "each area must have a neighbour"})
	}
	return a.car.with(alpha, scale)
}

func (g *Graph) carField() *field {
	a := &g.areas
	n := a.pattern.N
	f := newField("CAR", n, a.pattern, support.Real.Independent(1), float64(n), parameter{"alpha", dependence},
		parameter{"scale", positive})
	f.squares = func(x torch.Tensor, p []torch.Tensor) torch.Tensor {
		x = x.Div(wide(p[1]))
		own := x.Square().MatMul(torch.New(a.degree))
		return a.squares(x, nil).Sub(own).Mul(p[0]).Add(own)
	}
	degrees := 0.0
	for _, d := range a.degree {
		degrees += math.Log(d)
	}
	f.logDet = func(p []torch.Tensor) torch.Tensor {
		mustBeDense("CAR", n, "the density")
		values, _ := g.eigen()
		each := wide(p[0]).Mul(torch.New(values)).Neg().Log1p().T()
		return torch.Of(each.MustSumDimIntlist([]int64{-1}, false, each.DType(), false)).
			Sub(p[1].Log().Mul(2 * float64(n))).Add(degrees)
	}
	f.precision = func(p []torch.Tensor) torch.Tensor {
		own, others := a.laplacian(nil), a.laplacian(nil)
		for j := range n {
			others[a.pattern.Start[j]] = 0
			for k := a.pattern.Start[j] + 1; k < a.pattern.Start[j+1]; k++ {
				own[k] = 0
			}
		}
		return torch.New(own).Add(torch.New(others).Mul(wide(p[0]))).Mul(wide(p[1].Pow(-2)))
	}
	factor := func(p []torch.Tensor) torch.Tensor { // whose rows are scale/√(1 − alpha λ) D^-½ v
		mustBeDense("CAR", n, "draws")
		values, vectors := g.eigen()
		rows := make([]float64, 0, n*n)
		for k := range n {
			for i := range n {
				rows = append(rows, vectors[i*n+k]/math.Sqrt(a.degree[i]))
			}
		}
		by := wide(p[0]).Mul(torch.New(values)).Neg().Add(1).Pow(-0.5).Mul(wide(p[1]))
		return by.Unsqueeze(-1).Mul(torch.New(rows, n, n))
	}
	f.draw = func(src *Source, shape []int, p []torch.Tensor) torch.Tensor {
		return rowsTimes(standard(src, shape, p...), factor(p))
	}
	f.variance = func(p []torch.Tensor) torch.Tensor {
		squares := factor(p).Square().T()
		return torch.Of(squares.MustSumDimIntlist([]int64{-2}, false, squares.DType(), false))
	}
	return f
}
