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

// knownErrors are where figures, by the start of their names, are further off, why, and how far at most. Rows of other
// values and parameters are compared all the same.
var knownErrors = []struct {
	family, figure string
	where          func(x float64, p []float64) bool
	most           float64
	why            string
}{
	{"MultinomialLogits", "gradient in parameter", anywhere, 1e-5, absolute},
	{"BernoulliLogitGLM", "gradient in parameter", anywhere, 0.01, absolute},
	{"DirichletMultinomial", "log density", anywhere, 1, nearlySure},
	{"DirichletMultinomial", "gradient in parameter", anywhere, 1e-7,
		"a concentration of nearly all of the total, which rounds to it"},
	{"LowRankMultivariateNormal", "log density", anywhere, 0.01,
		"factors far larger than the diagonal: the small matrix is singular to rounding"},
	{"LowRankMultivariateNormal", "gradient", anywhere, 1e7,
		"factors far larger than the diagonal: relative to the terms of the gradient, which cancel"},
	{"TruncatedLogNormal", "", anywhere, 0.1, flat},
	{"TruncatedInverseGaussian", "gradient in parameter", anywhere, 2e4, flat},
	{"TruncatedStudentT", "gradient in parameter", anywhere, 1e-8, flat},
	{"TruncatedWeibull", "gradient in parameter", anywhere, 1e-7, flat},
	{"TruncatedLaplace", "gradient in parameter",
		func(_ float64, p []float64) bool { return p[0] == p[2] || p[0] == p[3] }, 0.05,
		"an end at the location, where the derivative jumps"},
}

const absolute = "a sum of whole numbers of which little is left: the error is absolute, a rounding of the largest"

const flat = "the interval has a small share of the tail, and what its ends give cancels"

const nearlySure = "a choice of a probability of nearly 1: the error is absolute, a rounding of 1"

func anywhere(float64, []float64) bool { return true }

// known is the index of the entry for a figure, or −1.
func known(family, figure string, x float64, p []float64) int {
	for i, k := range knownErrors {
		if k.family == family && strings.HasPrefix(figure, k.figure) && k.where(x, p) {
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

// errors are the worst of a family: of what has an entry in knownErrors by its index, and of all else at −1.
type errors struct {
	family string
	n      int
	worst  map[int]*worst
}

// add compares a figure, whose value and parameters are given to be found in knownErrors.
func (e *errors) add(t *testing.T, figure, want string, got, x float64, p []float64) {
	e.n++
	off, i := offBy(t, want, got), -1
	if off > referenceError {
		i = known(e.family, figure, x, p)
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
		w, most, why := e.worst[i], referenceError, ""
		if i >= 0 {
			most, why = knownErrors[i].most, " ("+knownErrors[i].why+")"
		}
		text += fmt.Sprintf("; off by %.1e: %s%s", w.off, w.at, why)
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
			e.add(t, figure, figures[i], got[i][k], at[0], at[1:])
		}
	}
	e.check(t)
}
