package dist_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// tailsOf make the distributions of testdata/tails.csv.gz from their parameters.
var tailsOf = map[string]func(p ...any) dist.Distribution{
	"Normal":            func(p ...any) dist.Distribution { return dist.Normal(p[0], p[1]) },
	"LogNormal":         func(p ...any) dist.Distribution { return dist.LogNormal(p[0], p[1]) },
	"HalfNormal":        func(p ...any) dist.Distribution { return dist.HalfNormal(p[0]) },
	"Exponential":       func(p ...any) dist.Distribution { return dist.Exponential(p[0]) },
	"Weibull":           func(p ...any) dist.Distribution { return dist.Weibull(p[0], p[1]) },
	"Gumbel":            func(p ...any) dist.Distribution { return dist.Gumbel(p[0], p[1]) },
	"Pareto":            func(p ...any) dist.Distribution { return dist.Pareto(p[0], p[1]) },
	"Laplace":           func(p ...any) dist.Distribution { return dist.Laplace(p[0], p[1]) },
	"Logistic":          func(p ...any) dist.Distribution { return dist.Logistic(p[0], p[1]) },
	"Cauchy":            func(p ...any) dist.Distribution { return dist.Cauchy(p[0], p[1]) },
	"HalfCauchy":        func(p ...any) dist.Distribution { return dist.HalfCauchy(p[0]) },
	"Uniform":           func(p ...any) dist.Distribution { return dist.Uniform(p[0], p[1]) },
	"Gamma":             func(p ...any) dist.Distribution { return dist.Gamma(p[0], p[1]) },
	"Chi2":              func(p ...any) dist.Distribution { return dist.Chi2(p[0]) },
	"InverseGamma":      func(p ...any) dist.Distribution { return dist.InverseGamma(p[0], p[1]) },
	"InverseGaussian":   func(p ...any) dist.Distribution { return dist.InverseGaussian(p[0], p[1]) },
	"StudentT":          func(p ...any) dist.Distribution { return dist.StudentT(p[0], p[1], p[2]) },
	"SkewNormal":        func(p ...any) dist.Distribution { return dist.SkewNormal(p[0], p[1], p[2]) },
	"GeneralizedNormal": func(p ...any) dist.Distribution { return dist.GeneralizedNormal(p[0], p[1], p[2]) },
	"Beta":              func(p ...any) dist.Distribution { return dist.Beta(p[0], p[1]) },
	"TruncatedNormal":   func(p ...any) dist.Distribution { return dist.TruncatedNormal(p[0], p[1], p[2], p[3]) },
	"TruncatedGamma":    func(p ...any) dist.Distribution { return dist.Truncated(dist.Gamma(p[0], p[1]), 1, 4000) },
	"Mixture": func(p ...any) dist.Distribution {
		return dist.Mixture([]float64{1, 3}, dist.Normal(p[0], p[1]), dist.StudentT(p[2], 0, 1))
	},
	"Transformed": func(p ...any) dist.Distribution {
		return dist.Transformed(dist.Logistic(p[0], p[1]), bijector.Exp())
	},
	"Poisson":                func(p ...any) dist.Distribution { return dist.Poisson(p[0]) },
	"PoissonLog":             func(p ...any) dist.Distribution { return dist.PoissonLog(p[0]) },
	"Binomial":               func(p ...any) dist.Distribution { return dist.Binomial(p[0], p[1]) },
	"BinomialLogits":         func(p ...any) dist.Distribution { return dist.BinomialLogits(p[0], p[1]) },
	"NegativeBinomial":       func(p ...any) dist.Distribution { return dist.NegativeBinomial(p[0], p[1]) },
	"NegativeBinomialProbs":  func(p ...any) dist.Distribution { return dist.NegativeBinomialProbs(p[0], p[1]) },
	"NegativeBinomialLogits": func(p ...any) dist.Distribution { return dist.NegativeBinomialLogits(p[0], p[1]) },
	"Geometric":              func(p ...any) dist.Distribution { return dist.Geometric(p[0]) },
	"BetaBinomial": func(p ...any) dist.Distribution {
		return dist.BetaBinomial(int(torch.Of(p[0]).Values()[0]), p[1], p[2])
	},
	"ZeroInflated": func(p ...any) dist.Distribution { return dist.ZeroInflated(p[0], dist.Poisson(p[1])) },
}

// tailRow is a row of the file: parameters and value, the two tails, and their derivatives by each parameter and the
// value; NaN where there is none.
type tailRow struct {
	text   []string
	args   []float64
	tails  [2]float64
	slopes [][2]float64
}

func readTails(t *testing.T) map[string][]tailRow {
	file, err := os.Open("testdata/tails.csv.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	reader := csv.NewReader(unzipped)
	reader.FieldsPerRecord = -1
	records, err := reader.ReadAll()
	require.NoError(t, err)
	out := map[string][]tailRow{}
	for _, r := range records {
		var v []float64
		for _, field := range r[1:] {
			x := math.NaN()
			if field != "-" {
				x, err = strconv.ParseFloat(field, 64)
				if err != nil {
					require.ErrorIs(t, err, strconv.ErrRange) // it underflows
				}
			}
			v = append(v, x)
		}
		n := (len(v) - 2) / 3 // each argument has two derivatives
		row := tailRow{text: r, args: v[:n], tails: [2]float64{v[n], v[n+1]}}
		for i := range n {
			row.slopes = append(row.slopes, [2]float64{v[n+2+2*i], v[n+3+2*i]})
		}
		// The file has the value's derivative first.
		row.slopes = append(row.slopes[1:], row.slopes[0])
		out[r[0]] = append(out[r[0]], row)
	}
	return out
}

// Both tails and their derivatives, against 60 digits.
func TestTailsReference(t *testing.T) {
	rows := readTails(t)
	require.Len(t, rows, len(tailsOf))
	settings := map[string]bool{}
	for name, of := range rows {
		for _, r := range of {
			key := name
			for _, v := range r.args[:len(r.args)-1] {
				key += " " + strconv.FormatFloat(v, 'g', -1, 64)
			}
			settings[key] = true
		}
		t.Run(name, func(t *testing.T) { scoped(t, func() { checkTails(t, name, of) }) })
	}
	require.GreaterOrEqual(t, len(settings), 300)
}

func checkTails(t *testing.T, name string, of []tailRow) {
	worst, worstSlope := 0.0, 0.0
	var at, atSlope tailRow
	each := [][]tailRow{of}
	if name == "BetaBinomial" { // its total is a number
		each = nil
		for _, r := range of {
			each = append(each, []tailRow{r})
		}
	}
	for _, of := range each {
		n := len(of[0].args)
		leaves, args := make([]torch.Tensor, n), make([]any, n)
		for i := range n {
			var v []float64
			for _, r := range of {
				v = append(v, r.args[i])
			}
			leaves[i] = torch.Must(torch.Leaf(torch.Of(scalarVec(v...))))
			args[i] = leaves[i]
		}
		d := tailsOf[name](args[:n-1]...)
		require.NoError(t, d.Validate())
		for side, tail := range []torch.Tensor{dist.LogCDF(d, args[n-1]), dist.LogSurvival(d, args[n-1])} {
			slopes := scalarGrad(tail.T(), leaves)
			for k, r := range of {
				if e := relative(tail.Values()[k], r.tails[side]); !(e <= worst) {
					worst, at = e, r
				}
				for i := range n {
					// A tail that underflows has no derivative, nor has a quotient by what overflows when it is squared.
					lost := math.Abs(r.tails[side]) < 1e-290 || math.Abs(r.args[n-1]) > 1e150
					if want := r.slopes[i][side]; !math.IsNaN(want) && !lost {
						if e := relative(slopes[i][k], want); !(e <= worstSlope) {
							worstSlope, atSlope = e, r
						}
					}
				}
			}
		}
	}
	t.Logf("%d points: tails %.1e at %v, derivatives %.1e at %v", len(of), worst, at.text, worstSlope, atSlope.text)
	require.LessOrEqual(t, worst, 1e-9)
	require.LessOrEqual(t, worstSlope, 1e-7)
}

// relative is a relative error; what is below 1e-290 is as good as 0.
func relative(got, want float64) float64 {
	if math.Abs(want) < 1e-290 && math.Abs(got) < 1e-290 {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}
