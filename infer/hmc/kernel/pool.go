package kernel

// Pool joins the estimates of several chains, so that one window's metric is made of all their draws. Chains add theirs in
// the order of their numbers, whatever the order in which their goroutines came: sums in another order would differ in the
// last bits. [Run] does so while all chains wait at a window's end; see [Adapt.Pooled].
type Pool struct{ mass Mass }

// Add takes a chain's draws, which are copied.
func (p *Pool) Add(m Mass) {
	if p.mass.Kind == "" {
		p.mass = Mass{Kind: m.Kind, From: m.From}
		if m.Kind != Unit {
			d := len(m.X.Mean)
			p.mass.X = NewMoments(d, len(m.X.M2) != d)
			if m.From == Fisher {
				p.mass.Grad = NewMoments(d, false)
			}
		}
	}
	p.mass.Merge(m)
}

// Estimate is the metric of all draws, as [Mass.Estimate].
func (p *Pool) Estimate(low LowRankFisher) (MetricState, bool) { return p.mass.Estimate(low) }
