package evidence

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// AIS is annealed importance sampling (Neal 2001): particles that walk from the start to the posterior each by itself,
// with a weight. Without resampling the weights are independent, so that their spread gives the standard error; they
// degenerate where the ladder is too coarse. Chains × Draws of the options are the particles, 8 × 1000 by default.
// Draws have the statistic "log_weight". The zero value of a field is its default.
//
// A pilot goes first, as in [SMC].
type AIS struct {
	Path   path.Path // default: from the prior, by powers of the likelihood
	Ladder []float64 // the β of the stages, from 0 to 1; nil adapts
	// ESS is the effective sample size of a step of β by itself, as a fraction of the particles, to which the steps of an
	// adapting ladder are made; default 0.997. The variance of the log weights is about √(1 − ESS) times the thermodynamic
	// length of the path, which grows with the square root of the dimensions.
	ESS          float64
	Moves        int     // transitions at each rung; default 1
	TargetAccept float64 // default 0.75
}

// Defaults are 8 times 1000 particles.
func (AIS) Defaults() infer.Options { return particles }

// Build checks the configuration and binds it to a target.
func (c AIS) Build(target infer.Target) (infer.Transform, error) {
	const typ = "evidence.AIS"
	if c.ESS == 0 {
		c.ESS = 0.997
	}
	if !(c.ESS > 0 && c.ESS < 1) {
		return nil, &infer.FieldError{Type: typ, Field: "ESS", Value: c.ESS, Allowed: "it must be above 0 and below 1"}
	}
	if c.Moves == 0 {
		c.Moves = 1
	}
	if c.Moves < 1 || c.Moves > 1<<16 {
		return nil, &infer.FieldError{Type: typ, Field: "Moves", Value: c.Moves, Allowed: "it must be at least 1"}
	}
	b, err := bind(typ, target, c.Path, c.Ladder, c.TargetAccept)
	if err != nil {
		return nil, err
	}
	return &sampler{bound: b, annealed: true, SMC: SMC{Path: c.Path, Ladder: c.Ladder, ESS: c.ESS, Conditional: true,
		Moves: c.Moves, MostMoves: c.Moves, Weighted: true}}, nil
}
