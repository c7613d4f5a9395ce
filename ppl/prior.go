package ppl

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// priorRows is how many prior draws are made at once.
const priorRows = 4096

// drawPrior draws a point of unconstrained space from the prior for each stream, of shape [K, d]. The error of a site
// whose prior has no integral of 1 names it.
func (p *Program) drawPrior(batch infer.Batch, streams torch.Streams) (infer.Params, error) {
	var flat []float64
	for from := 0; from < len(streams.Chains); from += priorRows {
		part := torch.Streams{Seed: streams.Seed, Offset: streams.Offset,
			Chains: streams.Chains[from:min(from+priorRows, len(streams.Chains))]}
		rows, err := p.priorBlock(batch, part)
		if err != nil {
			return infer.Params{}, fmt.Errorf("prior draws: %w", err)
		}
		flat = append(flat, rows...)
	}
	t, err := torch.FromSlice(flat, len(streams.Chains), p.layout.Dim())
	return infer.Params{Layout: p.layout, Flat: t}, err
}

func (p *Program) priorBlock(batch infer.Batch, streams torch.Streams) (flat []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		index, err := torch.FromSlice(make([]float64, len(streams.Chains)))
		if err != nil {
			return err
		}
		out, err := torch.VmapSources(func(_ []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
			free := map[string]torch.Tensor{}
			execute(p.model, batch, source, process(func(s *Site) { p.drawSite(s, source, free) }))
			row := make([]torch.Tensor, len(p.layout.Sites))
			for i, site := range p.layout.Sites {
				if row[i] = free[site.Name]; row[i] == (torch.Tensor{}) {
					return nil, fmt.Errorf("model, site %q: it was there when the model was compiled and is not in this run",
						site.Name)
				}
				if row[i], err = raw.Of(row[i].T().Reshape([]int64{int64(site.Size)}, false)); err != nil {
					return nil, err
				}
			}
			all, err := raw.Of(ts.Cat(raw.Pointers(row), 0))
			return []torch.Tensor{all}, err
		}, []torch.Tensor{index}, &streams, nil)
		if err != nil {
			return err
		}
		flat, err = torch.ToSlice[float64](out[0])
		return err
	})
	return flat, err
}

// drawSite gives a latent site a draw from its prior, which must be normalized, and remembers the unconstrained value.
func (p *Program) drawSite(s *Site, source *torch.Source, free map[string]torch.Tensor) {
	l, ok := p.latents[s.Name]
	if !ok || s.Observed || s.Value != (torch.Tensor{}) {
		return
	}
	switch {
	case s.Kind == KindParam:
		s.fail("a param has no prior: nothing can be drawn from it, and the evidence is not defined; make it a Sample " +
			"with a prior, or a number")
	case s.Dist.Name() == "ImproperUniform":
		s.fail("its prior is improper, it has no integral: it cannot be drawn from, and the evidence is not defined; give " +
			"it a proper prior")
	case s.Scale != 1 || s.Mask != (torch.Tensor{}):
		s.fail("its prior is scaled or masked, so that it is not normalized and the evidence is not defined")
	}
	b := l.onto(s)
	s.Value = torch.Of(s.Dist.Sample(source).T())
	if !l.empty() {
		free[s.Name] = b.Inverse(s.Value)
	}
}
