package approx

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fit far from a normal posterior tells how far, where importance weights cannot: of the fit N(m, s²) to N(0, 1) the
// mean is m/s off, and the standard deviation should be 1/s times as large. Gradients of a normal density are linear,
// so that only the draws' own moments have noise, of 1/√(2n) for n = 1000 draws of each of one or four fits.
func TestFartherOfNormalPosteriors(t *testing.T) {
	for _, c := range []struct{ mean, sd float64 }{{45, 1}, {-3, 0.1}, {0.1, 0.001}, {0, 20}} {
		for _, chains := range []int{1, 4} {
			means := make([]float64, chains)
			for k := range means {
				means[k] = c.mean
			}
			found := notes(t, c.sd, means...)
			require.Len(t, found, 1)
			text := found[0].Text
			m := said.FindStringSubmatch(text)
			require.NotNil(t, m, "%+v: %s", c, text)
			mean, sd := number(t, m[1]), number(t, m[2])
			if c.mean != 0 {
				assert.InEpsilon(t, max(c.mean, -c.mean)/c.sd, mean, 0.12, "%+v: %s", c, text) // two digits, and 4/√2000
			}
			assert.InEpsilon(t, 1/c.sd, sd, 0.12, "%+v: %s", c, text)
		}
	}
}

var said = regexp.MustCompile(` By the gradients at the draws the mean of the posterior is about (\S+) standard ` +
	`deviations of the fit from the fit's, for x\[\d\], and the standard deviation about (\S+) times the fit's, `)

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return v
}

// Where gradients are not those of a normal density nothing is said: exp(−cosh(20 x)) bends within the draws, and
// exp(x²) has no mean.
func TestFartherOfOthers(t *testing.T) {
	for name, density := range map[string]func(x torch.Tensor) torch.Tensor{
		"bent":   func(x torch.Tensor) torch.Tensor { return x.Mul(20).Exp().Add(x.Mul(-20).Exp()).Div(-2) },
		"hollow": func(x torch.Tensor) torch.Tensor { return x.Square() },
	} {
		f := normalFit(t, 1, 0)
		f.Target = infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return density(p.Get("x")).Sum(), nil
		}, 1)
		for _, n := range Closeness(f) {
			assert.NotContains(t, n.Text, "By the gradients", name)
		}
	}
}
