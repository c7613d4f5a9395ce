package nn

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Scheme gives each site of a network its law: as an initialiser, with [Init], or as a prior, with [NewPrior]. The laws
// are in the order of the sites.
type Scheme func(sites []Site) ([]Law, error)

// Gains for [KaimingNormal] and its like: what the weights are widened by, to make up for what an activation takes from
// the variance. They are PyTorch's; the gain of SELU that keeps variance 1 (Klambauer et al. 2017) is GainLinear.
const (
	GainLinear = 1.0
	GainReLU   = math.Sqrt2
	GainTanh   = 5.0 / 3
	GainSELU   = 3.0 / 4
)

// EachSite gives each site the law that f says.
func EachSite(f func(s Site) Law) Scheme {
	return func(sites []Site) ([]Law, error) {
		laws := make([]Law, len(sites))
		for i, s := range sites {
			laws[i] = f(s)
		}
		return laws, nil
	}
}

// Same gives all sites one law: Same(Normal(tau)) is the prior N(0, tau² I).
func Same(l Law) Scheme { return EachSite(func(Site) Law { return l }) }

// PerSite gives sites laws by name, and the others those of rest, which may be nil where all are named.
func PerSite(byName map[string]Law, rest Scheme) Scheme {
	return func(sites []Site) ([]Law, error) {
		laws := make([]Law, len(sites))
		if rest != nil {
			var err error
			if laws, err = rest(sites); err != nil {
				return nil, err
			}
		}
		names := make([]string, len(sites))
		for i, s := range sites {
			names[i] = s.Name
			if law, ok := byName[s.Name]; ok {
				laws[i] = law
			}
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if !slices.Contains(names, name) {
				return nil, fmt.Errorf("nn: a law for site %q: the sites are %q: %w", name, names, infer.ErrConfig)
			}
		}
		return laws, nil
	}
}

// HePrior is the prior of weights N(0, 2/fan-in) and biases N(0, biasSD²) (He et al. 2015).
func HePrior(biasSD float64) Scheme {
	return EachSite(func(s Site) Law {
		if s.Bias {
			return Normal(biasSD)
		}
		return Normal(math.Sqrt(2 / float64(s.FanIn)))
	})
}

// KaimingNormal starts weights at N(0, gain²/fan-in) and biases at 0 (He et al. 2015).
func KaimingNormal(gain float64) Scheme {
	return weights(func(s Site) Law { return Normal(gain / math.Sqrt(float64(s.FanIn))) })
}

// KaimingUniform starts weights uniform with the standard deviation gain/√fan-in, and biases at 0 (He et al. 2015).
func KaimingUniform(gain float64) Scheme {
	return weights(func(s Site) Law { return Uniform(gain * math.Sqrt(3/float64(s.FanIn))) })
}

// XavierNormal starts weights at N(0, 2 gain²/(fan-in + fan-out)) and biases at 0 (Glorot & Bengio 2010).
func XavierNormal(gain float64) Scheme {
	return weights(func(s Site) Law { return Normal(gain * math.Sqrt(2/float64(s.FanIn+s.FanOut))) })
}

// XavierUniform starts weights uniform with the standard deviation gain·√(2/(fan-in + fan-out)), and biases at 0
// (Glorot & Bengio 2010).
func XavierUniform(gain float64) Scheme {
	return weights(func(s Site) Law { return Uniform(gain * math.Sqrt(6/float64(s.FanIn+s.FanOut))) })
}

// weights leaves biases at 0, and gains at 1.
func weights(f func(s Site) Law) Scheme {
	return EachSite(func(s Site) Law {
		switch {
		case s.Bias:
			return Constant(0)
		case s.Gain:
			return s.Default
		}
		return f(s)
	})
}

// PyTorch starts each site as PyTorch does: linear layers and convolutions, biases too, uniform on ±1/√fan-in, LSTMs
// uniform on ±1/√Hidden, embeddings at N(0, 1).
func PyTorch() Scheme { return EachSite(func(s Site) Law { return s.Default }) }

// Init draws a point of each chain's stream: [d] for one chain, [K, d] for K, float64 and in main memory;
// [infer.Params.To] moves it. Chain k's point does not depend on the other chains. The streams move on. Give them
// another seed than the method that starts at the point, whose noise would otherwise begin with the same numbers.
func Init(n *Network, scheme Scheme, streams *torch.Streams) (infer.Params, error) {
	laws, err := n.laws(scheme)
	if err != nil {
		return infer.Params{}, err
	}
	if streams == nil || len(streams.Chains) == 0 {
		return infer.Params{}, fmt.Errorf("nn: there are no random streams: use torch.NewStreams: %w", infer.ErrConfig)
	}
	p := infer.Params{Layout: n.layout}
	err = torch.Do(func(s *torch.Scope) error {
		parts := make([]torch.Tensor, len(laws))
		for i, law := range laws {
			parts[i] = law.draw(streams, n.sizes[i], n.sites[i].rows())
		}
		p.Flat = torch.Cat(1, parts)
		if len(streams.Chains) == 1 {
			p.Flat = p.Flat.At(0)
		}
		s.Keep(p.Flat)
		return nil
	})
	return p, err
}

// laws are the scheme's, checked.
func (n *Network) laws(scheme Scheme) ([]Law, error) {
	if n == nil {
		return nil, fmt.Errorf("nn: the network is nil: %w", infer.ErrConfig)
	}
	if scheme == nil {
		return nil, fmt.Errorf("nn: the scheme is nil: expected one such as nn.Same(nn.Normal(1)): %w", infer.ErrConfig)
	}
	laws, err := scheme(n.Sites())
	if err != nil {
		return nil, err
	}
	if len(laws) != len(n.sites) {
		return nil, fmt.Errorf("nn: the scheme gives %d laws for %d sites: %w", len(laws), len(n.sites), infer.ErrConfig)
	}
	for i, law := range laws {
		if err := law.check(n.sites[i].Name); err != nil {
			return nil, err
		}
	}
	return laws, nil
}
