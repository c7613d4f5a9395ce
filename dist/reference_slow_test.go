//go:build slow

package dist_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// referenceError is what a figure may be off by: relative to it, and to a hundred-thousandth of what its arguments'
// rounding moves, so that 1e-9 is 45 roundings of the arguments where those are more.
const referenceError, ofRounding = 1e-9, 1e-5

// knownErrors are where figures, by the start of their names, are further off, and why. Each is at most the bound of an
// analysis of its rounding, which is computed from the value and the parameters; i is which element or parameter the
// figure is of.
var knownErrors = []struct {
	family, figure string
	bound          func(x, p []float64, i int) float64
	why            string
}{
	{"MultinomialLogits", "gradient in parameter", multinomialRounding, "counts less their means, which cancel"},
	{"BernoulliLogitGLM", "gradient in parameter", logitRounding, "residuals of both signs, which cancel"},
	{"TruncatedStudentT", "gradient in parameter", truncatedRounding,
		"a small share of the tails, whose derivatives cancel"},
	{"LowRankMultivariateNormal", "gradient in value", func(x, p []float64, i int) float64 {
		return newLowRankTerms(x, p).inValue(i)
	}, lowRank},
	{"LowRankMultivariateNormal", "gradient in parameter", func(x, p []float64, i int) float64 {
		terms := newLowRankTerms(x, p)
		switch {
		case i < 3:
			return terms.inValue(i)
		case i < 9:
			return terms.inFactor((i-3)/2, (i-3)%2)
		}
		return terms.inDiagonal(i - 9)
	}, lowRank},
}

const lowRank = "factors far larger than the diagonal: terms of the gradient cancel"

// rounding is that of some twenty operations, one after another.
const rounding = 20 * 0x1p-53

// multinomialRounding is of xᵢ − n pᵢ.
func multinomialRounding(x, p []float64, i int) float64 {
	n, total := 0.0, 0.0
	for k, v := range x {
		n, total = n+v, total+math.Exp(p[k]-p[i])
	}
	return rounding * (x[i] + n/total)
}

// logitRounding is of a sum of the rows of [design], or of ones, times y − 1/(1 + e⁻ˡ).
func logitRounding(y, p []float64, i int) (sum float64) {
	for k, row := range design {
		l := row[0]*p[0] + row[1]*p[1] + p[2]
		sum += math.Abs(append(row[:2:2], 1)[i]) * math.Abs(y[k]-1/(1+math.Exp(-l)))
	}
	return rounding * sum
}

// truncatedRounding is of a difference of tails over the mass of the interval. Each is a sum over 24 nodes.
func truncatedRounding(_, p []float64, i int) float64 {
	d, x := dist.StudentT(p[0], p[1], p[2]), scalarVec(p[3:]...)
	lower, upper := dist.LogCDF(d, x), dist.LogSurvival(d, x)
	low, high := lower.Exp().Values(), upper.Exp().Values()
	if low[0] > 0.5 {
		low = high
	}
	return (rounding + 24*0x1p-53) * (low[0] + low[1]) / math.Abs(low[1]-low[0]) / math.Abs(p[i])
}

// lowRankTerms are the sizes of what the gradients of a normal of low rank are sums of; see
// [dist.LowRankMultivariateNormal], whose letters these are.
type lowRankTerms struct {
	root  []float64     // √D
	rest  []float64     // |b| + S Sᵀ|b|, where S = |A||R⁻¹|
	u     [2]float64    // |R⁻¹| Sᵀ|b|
	slope [3][2]float64 // S |R⁻ᵀ|
}

func newLowRankTerms(x, p []float64) (out lowRankTerms) {
	var a, z [2][5]float64 // columns
	b := make([]float64, 5)
	for i := range 3 {
		out.root = append(out.root, math.Sqrt(p[9+i]))
		b[i] = math.Abs(x[i]-p[i]) / out.root[i]
		for j := range 2 {
			a[j][i] = p[3+2*i+j] / out.root[i]
		}
	}
	a[0][3], a[1][4] = 1, 1
	first := 0 // the longer column, by Gram and Schmidt's method
	if dot(a[1][:], a[1][:]) > dot(a[0][:], a[0][:]) {
		first = 1
	}
	second := 1 - first
	long := math.Sqrt(dot(a[first][:], a[first][:]))
	for k := range z[first] {
		z[first][k] = a[first][k] / long
	}
	z[second] = a[second]
	along := 0.0
	for range 2 {
		c := dot(z[first][:], z[second][:])
		along += c
		for k := range z[second] {
			z[second][k] -= c * z[first][k]
		}
	}
	short := math.Sqrt(dot(z[second][:], z[second][:]))
	var inverse [2][2]float64 // |R⁻¹|, by columns of A and of Z
	inverse[first][first], inverse[second][second] = 1/long, 1/short
	inverse[first][second] = math.Abs(along) / long / short
	var size [5][2]float64 // S
	var onto [2]float64    // Sᵀ|b|
	for i := range size {
		for k := range 2 {
			size[i][k] = math.Abs(a[0][i])*inverse[0][k] + math.Abs(a[1][i])*inverse[1][k]
			onto[k] += size[i][k] * b[i]
		}
	}
	for i := range 3 {
		out.rest = append(out.rest, b[i]+dot(size[i][:], onto[:]))
		for j := range 2 {
			out.slope[i][j] = dot(size[i][:], inverse[j][:])
		}
	}
	for j := range 2 {
		out.u[j] = dot(inverse[j][:], onto[:])
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func (l lowRankTerms) inValue(i int) float64 { return rounding * l.rest[i] / l.root[i] }

func (l lowRankTerms) inFactor(i, j int) float64 {
	return rounding * (l.rest[i]*l.u[j] + l.slope[i][j]) / l.root[i]
}

func (l lowRankTerms) inDiagonal(i int) float64 {
	return rounding * (l.rest[i]*l.rest[i] + 1) / (l.root[i] * l.root[i])
}

// known is the index of the entry for a figure, or −1.
func known(family, figure string) int {
	for i, k := range knownErrors {
		if k.family == family && strings.HasPrefix(figure, k.figure) {
			return i
		}
	}
	return -1
}

// reference is the rows of testdata/reference.csv.gz of one family: values and parameters by columns, and figures.
type reference struct {
	columns [][]float64
	figures [][]string
}

// readTable is the lines of a file of testdata.
func readTable(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer file.Close()
	text, err := gzip.NewReader(file)
	require.NoError(t, err)
	r := csv.NewReader(text)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	require.NoError(t, err)
	return rows
}

func readReference(t *testing.T) map[string]*reference {
	t.Helper()
	all := map[string]*reference{}
	for _, row := range readTable(t, "reference.csv.gz") {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		f := all[row[0]]
		if f == nil {
			f = &reference{columns: make([][]float64, n+1)}
			all[row[0]] = f
		}
		for i := range f.columns {
			v, err := strconv.ParseFloat(row[2+i], 64)
			require.NoError(t, err)
			f.columns[i] = append(f.columns[i], v)
		}
		f.figures = append(f.figures, row[3+n:])
	}
	return all
}

// names are those of a row's figures.
func (r *reference) names() []string {
	out := []string{"mean", "variance", "log density", "gradient in the value"}
	for i := range r.columns[1:] {
		out = append(out, fmt.Sprintf("gradient in parameter %d", i))
	}
	return append(out, "CDF", "survival", "p", "quantile")
}

// got is what a family gives, in the order of the figures.
func (r *reference) got(make func(p ...any) dist.Distribution) [][]float64 {
	params, leaves := tensors(r.columns[1:])
	x := torch.Must(torch.Leaf(torch.Of(scalarVec(r.columns[0]...))))
	d := make(params...)
	logp := d.LogProb(x).T()
	out := [][]float64{scalarRead(d.Mean().T()), scalarRead(d.Variance().T()), scalarRead(logp)}
	grads := scalarGrad(logp, append(leaves, x))
	out = append(out, grads[len(leaves)])
	out = append(out, grads[:len(leaves)]...)
	var cdf, survival, p, quantile []float64
	if c, ok := d.(dist.CDFer); ok {
		cdf = scalarRead(c.CDF(x).T())
		_, upper := dist.TailsOf(d, x)
		survival = scalarRead(upper.Exp().T())
	}
	if q, ok := d.(dist.ICDFer); ok {
		for _, f := range r.figures {
			v, err := strconv.ParseFloat(f[len(f)-2], 64)
			if err != nil {
				v = 0.5
			}
			p = append(p, v)
		}
		quantile = scalarRead(q.ICDF(torch.Of(scalarVec(p...))).T())
	}
	return append(out, cdf, survival, nil, quantile)
}

// offBy is how far a number is from a figure of the file; infinite where one of the two has no number, or no bound.
func offBy(t *testing.T, figure string, got float64) float64 {
	value, moves, _ := strings.Cut(figure, "~")
	want, err := strconv.ParseFloat(value, 64)
	require.NoError(t, err)
	scale := math.Abs(want)
	if moves != "" {
		m, err := strconv.ParseFloat(moves, 64)
		require.NoError(t, err)
		scale += ofRounding * m
	}
	switch off := math.Abs(got - want); {
	case got == want || math.IsNaN(got) && math.IsNaN(want):
		return 0
	case math.IsNaN(got) || math.IsInf(got, 0) || math.IsInf(want, 0):
		return math.Inf(1)
	case want == 0:
		return off
	default:
		return off / scale
	}
}

// TestReference compares every family with testdata/reference.csv.gz, and logs the worst error of each.
func TestReference(t *testing.T) {
	makers := map[string]func(p ...any) dist.Distribution{}
	for _, f := range scalarFamilies {
		makers[f.name] = f.make
	}
	for _, f := range countFamilies {
		makers[f.name] = f.make
	}
	delete(makers, "Delta") // it has no density
	all := readReference(t)
	for name, make := range makers {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, all, name)
			scoped(t, func() { all[name].compare(t, name, make) })
		})
	}
}

// worst is the largest of a figure's errors, and where.
type worst struct {
	off float64
	at  string
}

func (w *worst) add(off float64, at string) {
	if off > w.off || w.at == "" {
		w.off, w.at = off, at
	}
}

// errors are the worst of a family: of what needs an entry in knownErrors by its index, and of all else at −1.
type errors struct {
	family string
	n      int
	worst  map[int]*worst
}

// add compares a figure of a value and parameters. What is further off than referenceError has an entry in
// knownErrors, and its error is told over the bound of that.
func (e *errors) add(t *testing.T, figure, want string, got float64, x, p []float64) {
	e.n++
	off, i := offBy(t, want, got), -1
	if off > referenceError {
		i = known(e.family, figure)
	}
	if i >= 0 {
		value, _, _ := strings.Cut(want, "~")
		w, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		_, number, _ := strings.Cut(strings.TrimPrefix(figure, knownErrors[i].figure), " ")
		of, err := strconv.Atoi(number)
		require.NoError(t, err)
		off = math.Abs(got-w) / knownErrors[i].bound(x, p, of)
	}
	if e.worst[i] == nil {
		e.worst[i] = &worst{}
	}
	e.worst[i].add(off, fmt.Sprintf("%s at %v %v: %.15g, not %s", figure, x, p, got, want))
}

// check logs the worst in a line, and fails where one is further off than it may be.
func (e *errors) check(t *testing.T) {
	text := fmt.Sprintf("%s: %d figures", e.family, e.n)
	for _, i := range slices.Sorted(maps.Keys(e.worst)) {
		w, most := e.worst[i], referenceError
		if i < 0 {
			text += fmt.Sprintf("; off by %.1e: %s", w.off, w.at)
		} else {
			most = 1
			text += fmt.Sprintf("; off by %.1e of the bound: %s (%s)", w.off, w.at, knownErrors[i].why)
		}
		assert.LessOrEqual(t, w.off, most, "%s: %s", e.family, w.at)
	}
	t.Log(text)
}

func (r *reference) compare(t *testing.T, name string, make func(p ...any) dist.Distribution) {
	got, e := r.got(make), errors{family: name, worst: map[int]*worst{}}
	for i, figure := range r.names() {
		for k, figures := range r.figures {
			if figure == "p" || figures[i] == "-" || len(got[i]) == 0 {
				continue
			}
			at := row(r.columns, k)
			e.add(t, figure, figures[i], got[i][k], at[:1], at[1:])
		}
	}
	e.check(t)
}
