package ppl_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Why a model is not compiled names the operation, the site and the line of the model.
func TestRefusedOperationHasSite(t *testing.T) {
	sinc := func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustSinc(false)) }
	var want string
	last := func(name string) string { // the site that is named
		_, _, line, _ := runtime.Caller(1)
		want = fmt.Sprintf("sinc at site %q, or behind it (mark_test.go:%d): the operation is not understood", name, line)
		return name
	}
	for name, m := range map[string]ppl.Model{
		"a formula": func(c *ppl.Ctx) {
			a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample(last("b"), dist.Normal(0, 1))
			c.Observe("y", dist.Normal(sinc(a).Add(b), 1), c.Data("y"))
		},
		"a factor": func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			c.Observe(last("y"), dist.Normal(a, 1), c.Data("y"))
			c.Factor("f", sinc(a))
		},
		"a plate": func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				b := c.Sample(last("b"), dist.Normal(a, 1))
				c.Observe("y", dist.Normal(sinc(b), 1), c.Data("y"))
			})
		},
	} {
		batch := infer.Batch{"y": vec(0.1, 0.2, 0.3, 0.4)}
		p, err := ppl.Compile(m, batch)
		require.NoError(t, err, name)
		start, err := p.Start(batch, 1, 1)
		require.NoError(t, err)
		_, report, err := infer.Compile(p.Target(), start, batch, native.Options{})
		require.NoError(t, err)
		require.Equal(t, want, report.Reason, name)
	}
}

// A loop over time that the compiler leaves as it is, and a model of many operations, name the site too.
func TestUnrolledLoopHasSite(t *testing.T) {
	const n = 40
	report := compiledReport(t, func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		for t := range n * n {
			if t%(2+t/90) == 0 { // no two steps are alike for long
				x = x.Sin()
			}
			x = x.Add(x.Mul(0.5).Cos())
		}
		c.Observe("y", dist.Normal(x, 1), c.Data("y"))
	}, infer.Batch{"y": vec(0.1)})
	require.Contains(t, report.String(), `at site "x", or behind it (mark_test.go:`)
}
