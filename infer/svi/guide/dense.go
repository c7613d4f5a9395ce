package guide

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// Dense is a normal distribution N(μ, LLᵀ) of all variables on unconstrained space, with any covariance. The Params are
// "guide.loc", μ, of shape [d], and "guide.scale_tril", L, of shape [d, d].
type Dense struct {
	InitScale float64    // L is InitScale·I at the start; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g Dense) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.Dense"
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	if err := l.squareFits(who); err != nil {
		return nil, err
	}
	return l.dense(l.start, diagonal(scale, l.dim)), nil
}

// squareFits refuses a factor, [d, d], that would take too much memory.
func (l *latents) squareFits(who string) error {
	d := float64(l.dim)
	if err := method.CheckMemory(fmt.Sprintf("the scale factor, of shape [%d, %d],", l.dim, l.dim), 8*d*d, 0, "",
		"use guide.Normal or guide.LowRank"); err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	return nil
}

// dense is the normal distribution that starts with a mean and a factor, [d, d] row by row.
func (l *latents) dense(mean, factor []float64) ppl.Model {
	d := l.dim
	loc, tril := tensor(mean, d), tensor(factor, d, d)
	return func(c *ppl.Ctx) {
		q := dist.MultivariateNormalCholesky(c.Param("guide.loc", loc, support.Real.Independent(1)),
			c.Param("guide.scale_tril", tril, support.LowerCholesky))
		l.declare(c, c.Sample("_theta", q))
	}
}

// LowRank is a normal distribution N(μ, WWᵀ + diag D) of all variables on unconstrained space, with W of rank r. The
// Params are "guide.loc", μ, of shape [d], "guide.factor", W, of shape [d, r], and "guide.scale", the roots of D.
type LowRank struct {
	Rank      int        // r; 0 means the root of d, rounded up
	InitScale float64    // W and √D start so that standard deviations are about InitScale; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g LowRank) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.LowRank"
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	if g.Rank == 0 {
		g.Rank = int(math.Ceil(math.Sqrt(float64(l.dim))))
	}
	if g.Rank < 1 || g.Rank > l.dim {
		return nil, &infer.FieldError{Type: who, Field: "Rank", Value: g.Rank,
			Allowed: fmt.Sprintf("it must be from 1 to the %d numbers of the variables, or 0 for the default", l.dim)}
	}
	d, r := l.dim, g.Rank
	// Columns that start alike would stay alike.
	factor := normals(l.dim*g.Rank, scale*math.Sqrt(0.19/float64(g.Rank)))
	loc, w, diag := tensor(l.start, d), tensor(factor, d, r), tensor(full(0.9*scale, l.dim), d)
	return func(c *ppl.Ctx) {
		sd := c.Param("guide.scale", diag, support.Positive)
		q := dist.LowRankMultivariateNormal(c.Param("guide.loc", loc, support.Real), c.Param("guide.factor", w,
			support.Real), sd.Square())
		l.declare(c, c.Sample("_theta", q))
	}, nil
}
