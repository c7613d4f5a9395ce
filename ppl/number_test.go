package ppl_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Go number in a batch, and among the values of a handler, is a tensor of shape []: 0 too, which is not the same as
// an entry that was not set.
func TestNumbersAsData(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
	}
	at := func(m ppl.Model, batch infer.Batch) float64 {
		p, err := ppl.Compile(m, batch)
		require.NoError(t, err)
		var logp float64
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			points, err := p.Start(p.Batch(), 1, 1)
			if err != nil {
				return err
			}
			points.Flat = torch.New(make([]float64, points.Layout.Dim()))
			v, _ := p.Target().LogPosterior(points, p.Batch())
			logp = v.Item()
			return nil
		}))
		return logp
	}
	for _, y := range []float64{0, 1.5} {
		want := at(model, infer.Batch{"y": torch.Scalar(y)})
		assert.InDelta(t, -1.8378770664093453-y*y/2, want, 1e-12) // −log 2π − y²/2
		assert.Equal(t, want, at(model, infer.Batch{"y": torch.Of(y)}))
	}
	done := ppl.Condition(func(c *ppl.Ctx) {
		c.Sample("y", dist.Normal(c.Sample("mu", dist.Normal(0, 1)), 1))
	}, ppl.Values{"y": torch.Of(0)})
	assert.InDelta(t, -1.8378770664093453, at(done, nil), 1e-12)
	_, err := ppl.Compile(model, infer.Batch{"y": torch.Tensor{}})
	assert.ErrorContains(t, err, `"y"`)
}
