//go:build slow

package dist_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math"
	"os"
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

// knownErrors are where figures are further off, and why. Rows of other values and parameters are compared all the
// same.
var knownErrors = []struct {
	family, figure string
	where          func(x float64, p []float64) bool
	why            string
}{
	{"Gamma", "gradient in parameter 1", tiny(0), sumWithOne},
	{"InverseGamma", "gradient in parameter 1", tiny(0), sumWithOne},
	{"Weibull", "gradient in parameter 0", below(1, 1e-2), sumWithOne},
	{"StudentT", "gradient in parameter 2", tiny(0), sumWithOne},
	{"StudentT", "gradient in parameter 0", func(_ float64, p []float64) bool { return p[0] > 1e5 },
		"relative to 1/df², to which the terms of the digamma functions cancel"},
	{"TruncatedNormal", "gradient in parameter 0", narrow, narrowly},
	{"TruncatedNormal", "gradient in parameter 1", narrow, narrowly},
	{"NegativeBinomial", "gradient in parameter 1",
		func(_ float64, p []float64) bool { return p[1] < 1e-3 || p[0] < 1e-2*p[1] }, smallTotal},
	{"NegativeBinomialProbs", "gradient in parameter 0",
		func(_ float64, p []float64) bool { return p[0] < 1e-3 || p[1] < 1e-6 }, smallTotal},
	{"NegativeBinomialLogits", "gradient in parameter 0", below(0, 1e-3), smallTotal},
	{"BetaBinomial", "gradient in parameter 2", func(_ float64, p []float64) bool { return p[1] > 1e8*p[2] },
		"concentrations of which one is 1e8 times the other"},
	{"PoissonLog", "gradient in parameter 0", func(_ float64, p []float64) bool { return p[0] > 709 },
		"NaN where the rate overflows and the log density is minus infinity"},
	{"PoissonLog", "gradient in parameter 0", func(x float64, p []float64) bool { return x == 1 && math.Abs(p[0]) < 1e-6 },
		"a count next to the rate: the error is absolute, a rounding of 1"},
	{"Categorical", "", anywhere, nearlySure},
	{"CategoricalLogits", "", anywhere, nearlySure},
}

const (
	sumWithOne = "the shape is added to 1 and the 1 taken away; absolutely the error is a rounding of 1/scale"
	narrowly   = "the interval is narrower than 1e-2 of the scale"
	smallTotal = "totals below 1e-3, or means small beside the total"
	nearlySure = "a choice of a probability of nearly 1: the error is absolute, a rounding of 1"
)

func anywhere(float64, []float64) bool { return true }

func below(i int, least float64) func(float64, []float64) bool {
	return func(_ float64, p []float64) bool { return p[i] < least }
}

func tiny(i int) func(float64, []float64) bool { return below(i, 1e-5) }

func narrow(_ float64, p []float64) bool { return p[3]-p[2] < 1e-2*p[1] }

// isKnown says why a figure may be off.
func isKnown(family, figure string, x float64, p []float64) string {
	for _, k := range knownErrors {
		if k.family == family && (k.figure == figure || k.figure == "") && k.where(x, p) {
			return k.why
		}
	}
	return ""
}

// reference is the rows of testdata/reference.csv.gz of one family: values and parameters by columns, and figures.
type reference struct {
	columns [][]float64
	figures [][]string
}

func readReference(t *testing.T) map[string]*reference {
	t.Helper()
	file, err := os.Open("testdata/reference.csv.gz")
	require.NoError(t, err)
	defer file.Close()
	text, err := gzip.NewReader(file)
	require.NoError(t, err)
	r := csv.NewReader(text)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	require.NoError(t, err)
	all := map[string]*reference{}
	for _, row := range rows {
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
	x := torch.Must(torch.Leaf(scalarVec(r.columns[0]...)))
	d := make(params...)
	logp := d.LogProb(torch.Of(x)).T()
	out := [][]float64{scalarRead(d.Mean().T()), scalarRead(d.Variance().T()), scalarRead(logp)}
	grads := scalarGrad(logp, append(leaves, x))
	out = append(out, grads[len(leaves)])
	out = append(out, grads[:len(leaves)]...)
	var cdf, survival, p, quantile []float64
	if c, ok := d.(dist.CDFer); ok {
		cdf = scalarRead(c.CDF(torch.Of(x)).T())
		_, upper := dist.TailsOf(d, torch.Of(x))
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

func (r *reference) compare(t *testing.T, name string, make func(p ...any) dist.Distribution) {
	got := r.got(make)
	compared, overall, known := 0, worst{}, map[string]*worst{}
	for i, figure := range r.names() {
		for k, figures := range r.figures {
			if figure == "p" || figures[i] == "-" || len(got[i]) == 0 {
				continue
			}
			compared++
			off, p := offBy(t, figures[i], got[i][k]), row(r.columns, k)
			at := fmt.Sprintf("%s at %v: %.15g, not %s", figure, p, got[i][k], figures[i])
			if why := isKnown(name, figure, p[0], p[1:]); why != "" && off > referenceError {
				if known[why] == nil {
					known[why] = &worst{}
				}
				known[why].add(off, at)
				continue
			}
			overall.add(off, at)
		}
	}
	for why, w := range known {
		t.Logf("%s: known: off by %.1e: %s (%s)", name, w.off, w.at, why)
	}
	t.Logf("%s: %d figures, the worst off by %.1e: %s", name, compared, overall.off, overall.at)
	assert.LessOrEqual(t, overall.off, referenceError, "%s: %s", name, overall.at)
}
