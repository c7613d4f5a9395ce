package svi

import (
	"encoding/json"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// State is the state of [SVI]: a guide on its way, or K of them.
type State struct {
	Point     infer.Params  // a draw of the guide, before the last move, of shape [d] or [K, d]
	Optimizer infer.State   // the optimiser's; its position is the Params on unconstrained space
	Streams   torch.Streams // of the K chains

	plan    *plan
	average *average      // the baselines of a single sample
	spread  *average      // variances over the samples of ℓ and log p(y, z)
	trend   *approx.Trend // of the NELBO
}

// Position is a draw of the guide: that of the last update.
func (s State) Position() infer.Params { return s.Point }

// Steps is the number of updates so far.
func (s State) Steps() int {
	if s.Optimizer == nil {
		return 0
	}
	return s.Optimizer.Steps()
}

// prefix comes before the names of the optimiser's tensors in a saved state.
const prefix = "guide."

// Save names the parts of the state: "params" is the draw, and the optimiser's parts have "guide." before their names.
func (s State) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Steps(), Streams: s.Streams, Tensors: infer.Tensors{}, Extra: s.extra()}
	if s.Optimizer == nil {
		return saved
	}
	saved.Tensors["params"] = s.Point.Flat
	for key, x := range s.Optimizer.Save().Tensors {
		saved.Tensors[prefix+key] = x
	}
	return saved
}

// extra is what a checkpoint has beside tensors.
func (s State) extra() []byte {
	if s.average == nil && s.spread == nil && s.trend == nil {
		return nil
	}
	b, err := json.Marshal(more{s.average, s.spread, s.trend.Bytes()})
	if err != nil { // all numbers are finite
		return nil
	}
	return b
}

type more struct {
	Average *average        `json:",omitempty"`
	Spread  *average        `json:",omitempty"`
	Trend   json.RawMessage `json:",omitempty"`
}

// readExtra reads it back.
func (s *State) readExtra(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var m more
	err := json.Unmarshal(b, &m)
	if err == nil {
		s.average, s.spread = m.Average, m.Spread
		s.trend, err = approx.ReadTrend(m.Trend)
	}
	if err != nil {
		return fmt.Errorf("the baselines and the NELBO so far cannot be read: %w", err)
	}
	return nil
}

// Tensors are what the state owns, and what it shares with others.
func (s State) Tensors() (owned, shared infer.Tensors) {
	owned = infer.Tensors{}
	if s.Optimizer == nil {
		return owned, nil
	}
	owned["params"] = s.Point.Flat
	more, shared := s.Optimizer.Tensors()
	for key, x := range more {
		owned[prefix+key] = x
	}
	return owned, shared
}

// Params are the Params of guide and model of a chain, on their supports: what ppl.Substitute gives a model.
func (s State) Params(chain int) (ppl.Values, error) {
	if s.Optimizer == nil || s.plan == nil {
		return nil, fmt.Errorf("svi.State: Params: the state is empty: a transform makes states")
	}
	phi := s.Optimizer.Position()
	if chain < 0 || chain >= phi.Chains() {
		return nil, fmt.Errorf("svi.State: Params of chain %d: there are %d: %w", chain, phi.Chains(), infer.ErrConfig)
	}
	out := ppl.Values{}
	err := torch.Do(func(scope *torch.Scope) error {
		if phi.Batched() {
			phi = infer.Params{Layout: phi.Layout, Flat: phi.Flat.At(chain)}
		}
		for key, v := range s.plan.values(phi) {
			own, err := torch.Copy(v)
			if err != nil {
				return err
			}
			out[key] = own
			scope.Keep(own)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("svi.State: Params: %w", err)
	}
	return out, nil
}

// unconstrained is the value of a variable on unconstrained space; that of a discrete one is the value itself.
func (l *latent) unconstrained(s *ppl.Site) torch.Tensor {
	if l.discrete {
		return s.Value
	}
	return l.at(s).Inverse(s.Value)
}

// Bound estimates a bound on a batch at T = 1, for each chain, from samples draws of the guide of the stream (seed,
// chain): on the scale of the sum over data, in nats. nil means [Trace]. Of data that were held out it says how well
// guide and model do on them.
func (s State) Bound(elbo ELBO, batch infer.Batch, samples int, seed uint64) (values []float64, err error) {
	if s.Optimizer == nil || s.plan == nil {
		return nil, fmt.Errorf("svi.State: Bound: the state is empty: a transform makes states")
	}
	if samples < 1 || samples > maxSamples {
		return nil, fmt.Errorf("svi.State: Bound: %d samples, there must be from 1 to %d: %w", samples, maxSamples,
			infer.ErrConfig)
	}
	if elbo == nil {
		elbo = Trace{}
	}
	if err := elbo.check(1); err != nil {
		return nil, err
	}
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			phi := s.Optimizer.Position()
			k, n, d := phi.Chains(), samples, phi.Layout.Dim()
			rows := phi.Flat.Reshape(k, 1, d).Expand(k, n, d).T()
			streams := torch.NewStreams(seed, k)
			out, err := mapped(torch.Of(rows.MustReshape([]int64{int64(k * n), int64(d)}, false)), phi.Layout, &streams, samples,
				func(phi infer.Params, source *torch.Source) []torch.Tensor {
					terms := s.plan.shoot(phi, batch, source).terms(weights{prior: 1, guide: 1}, elbo.closed())
					return []torch.Tensor{total(terms)}
				})
			if err != nil {
				return err
			}
			values, err = torch.ToSlice[float64](elbo.bound(out[0].Reshape(k, n), 1))
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("svi.State: Bound: %w", err)
	}
	return values, nil
}
