package draws

import "github.com/kelvin-ppl/kelvin/internal/sample"

// Row is the summary of one element of the flat vector, over the draws of all chains.
type Row struct {
	// Name is the element's, as in [Draws.Names].
	Name string
	// Mean and SD, with divisor n-1, are those of the draws. SD is NaN for a single draw.
	Mean, SD float64
	// Quantiles has one number per probability that the summary was asked for.
	Quantiles []float64
}

// Mean is the mean of each element of a site over the draws of all chains: Size numbers, row-major. It is accurate also
// where the mean is much larger than the spread. It is NaN if any draw is NaN or there are infinities of both signs,
// and infinite if there are infinities of one sign. [ErrUnknownName] and [ErrNoDraws] are the errors.
func (d *Draws) Mean(name string) ([]float64, error) {
	s, err := d.siteWithDraws("mean", name)
	if err != nil {
		return nil, err
	}
	mean := make([]float64, s.Size)
	d.eachElement(s.Offset, s.Offset+s.Size, func(i int, trace []float64) {
		mean[i-s.Offset], _ = sample.Moments(trace)
	})
	return mean, nil
}

// SD is the standard deviation, with divisor n-1, of each element of a site over the draws of all chains: Size numbers,
// row-major. It is accurate also where the mean is much larger than the spread, and exactly 0 if all draws are equal.
// It is NaN for a single draw, and if any draw is not finite. [ErrUnknownName] and [ErrNoDraws] are the errors.
func (d *Draws) SD(name string) ([]float64, error) {
	s, err := d.siteWithDraws("sd", name)
	if err != nil {
		return nil, err
	}
	sd := make([]float64, s.Size)
	d.eachElement(s.Offset, s.Offset+s.Size, func(i int, trace []float64) {
		_, sd[i-s.Offset] = sample.Moments(trace)
	})
	return sd, nil
}

// Quantile is, for each probability p, the quantile of each element of a site over the draws of all chains:
// [len(p)][Size], row-major, so that q[k] is laid out like Mean. Without p it is those for 0.05, 0.5 and 0.95.
//
// Quantiles are of type 7 of Hyndman and Fan (1996): order statistics, linearly interpolated at (n - 1) p, the default
// of R and of NumPy. Infinities are ordinary extreme values. All quantiles of an element with a NaN are NaN.
// [ErrUnknownName], [ErrNoDraws], and [ErrRange] for a p outside [0, 1] are the errors.
func (d *Draws) Quantile(name string, p ...float64) ([][]float64, error) {
	s, err := d.siteWithDraws("quantile", name)
	if err != nil {
		return nil, err
	}
	if p, err = probabilities(p); err != nil {
		return nil, err
	}
	q := make([][]float64, len(p))
	for k := range q {
		q[k] = make([]float64, s.Size)
	}
	d.eachElement(s.Offset, s.Offset+s.Size, func(i int, trace []float64) {
		sample.Sort(trace)
		for k := range p {
			q[k][i-s.Offset] = sample.Quantile(trace, p[k])
		}
	})
	return q, nil
}

// Summary is one row for each element of the flat vector, in order, over the draws of all chains. The quantiles are
// those for p, by default 0.05, 0.5 and 0.95. Means, deviations and quantiles are those of [Draws.Mean], [Draws.SD] and
// [Draws.Quantile]. [ErrNoDraws], and [ErrRange] for a p outside [0, 1] are the errors.
func (d *Draws) Summary(p ...float64) ([]Row, error) {
	p, err := probabilities(p)
	if err != nil {
		return nil, err
	}
	if d.Total() == 0 {
		return nil, failf(ErrNoDraws, "summary: there are no draws")
	}
	rows := make([]Row, d.dim)
	for i, name := range d.Names() {
		rows[i].Name = name
	}
	d.eachElement(0, d.dim, func(i int, trace []float64) {
		row := &rows[i]
		row.Mean, row.SD, row.Quantiles = sample.Describe(trace, p)
	})
	return rows, nil
}

func (d *Draws) siteWithDraws(doing, name string) (Site, error) {
	s, err := d.Site(name)
	if err != nil {
		return Site{}, err
	}
	if d.Total() == 0 {
		return Site{}, failf(ErrNoDraws, "%s of %q: there are no draws", doing, name)
	}
	return s, nil
}

// defaultProbabilities are those of a summary that names none.
var defaultProbabilities = []float64{0.05, 0.5, 0.95}

// probabilities are p, or the default ones if p is empty; all must be in [0, 1].
func probabilities(p []float64) ([]float64, error) {
	if len(p) == 0 {
		return defaultProbabilities, nil
	}
	for i, v := range p {
		if !(v >= 0 && v <= 1) { // a NaN too
			return nil, failf(ErrRange, "probability %d is %v, want 0 to 1", i, v)
		}
	}
	return p, nil
}
