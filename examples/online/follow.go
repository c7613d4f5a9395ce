package main

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// filter is one way to follow the ratings.
type filter struct {
	name, title string
	method      func(walk infer.Schedule) infer.Method
}

// filters are those that are compared. All start from N(0, 1) for each rating, and know the random walk.
func filters() []filter {
	likelihood := curvature.Likelihood(forward, outer)
	return []filter{
		{"gauss_newton", "Gauss-Newton", func(walk infer.Schedule) infer.Method {
			return ekf.GaussNewton{Forward: forward, Outer: outer, TransitionSD: walk}
		}},
		{"dense_fisher", "Fisher, dense", func(walk infer.Schedule) infer.Method {
			return ekf.Dense{PerDatum: likelihood, LR: infer.Constant(1), TransitionSD: walk}
		}},
		{"diag_fisher", "Fisher, diagonal", func(walk infer.Schedule) infer.Method {
			return ekf.Diag{PerDatum: likelihood, LR: infer.Constant(1), TransitionSD: walk}
		}},
	}
}

// normal is a filter's distribution of the ratings.
type normal struct {
	mean []float64
	cov  [][]float64
}

// of reads a state.
func of(state infer.State) (n normal, err error) {
	if n.mean, err = state.Position().Values(); err != nil {
		return n, err
	}
	n.cov = make([][]float64, teams)
	var flat []float64
	switch s := state.(type) {
	case ekf.DenseState:
		flat, err = torch.ToSlice[float64](s.Covariance)
	case ekf.DiagState:
		var v []float64
		v, err = torch.ToSlice[float64](s.Variance)
		flat = make([]float64, teams*teams)
		for i := range v {
			flat[i*teams+i] = v[i]
		}
	default:
		err = fmt.Errorf("there is no covariance in a %T", state)
	}
	if err != nil {
		return n, err
	}
	for i := range n.cov {
		n.cov[i] = flat[i*teams : (i+1)*teams]
	}
	return n, nil
}

// sd is the standard deviation of a team's rating after a step of the random walk of variance q2.
func (n normal) sd(team int, q2 float64) float64 { return math.Sqrt(n.cov[team][team] + q2) }

// relative is the mean and standard deviation of a team's rating less that of the league's mean: only differences have
// anything to do with results.
func (n normal) relative(team int) (mean, sd float64) {
	v := n.cov[team][team]
	for i := range teams {
		mean -= n.mean[i] / teams
		v -= 2 * n.cov[team][i] / teams
		for j := range teams {
			v += n.cov[i][j] / (teams * teams)
		}
	}
	return mean + n.mean[team], math.Sqrt(v)
}

// foresee is the probabilities of the results of a game: those at the difference d of the ratings, averaged over its
// normal distribution after a step of the random walk of variance q2 of each team.
func (n normal) foresee(g game, q2 float64) (p [results]float64) {
	mean := n.mean[g.home] - n.mean[g.away]
	sd := math.Sqrt(n.cov[g.home][g.home] + n.cov[g.away][g.away] - 2*n.cov[g.home][g.away] + 2*q2)
	for k, x := range nodes {
		for i, c := range chances(mean + sd*math.Sqrt2*x) {
			p[i] += weights[k] * c / math.SqrtPi
		}
	}
	return p
}

// nodes and weights are those of Gauss-Hermite quadrature: ∫ f(x) exp(−x²) dx ≈ Σ w f(x).
var nodes, weights = hermite(32)

func hermite(n int) (x, w []float64) {
	x, w = make([]float64, n), make([]float64, n)
	quad.Hermite{}.FixedLocations(x, w, math.Inf(-1), math.Inf(1))
	return x, w
}

// path is a filter's way through a league.
type path struct {
	day      []float64   // twice a round: before its games and after them
	mean, sd [][]float64 // [..][teams], of the ratings
	inside   float64     // share of the true ratings, after each round, in the bands of 95 %
	relative float64     // the same of ratings less the league's mean
	log      float64     // mean log probability of what happened, given all games before
	updates  int
	seconds  float64
}

const band95 = 1.959963984540054 // standard deviations

// follow updates a filter with one game after another, and predicts each before it is played. This is the whole of the
// contract: build, init, update.
func follow(f filter, l league) (p path, err error) {
	transform, err := f.method(func(step int) float64 { return walkSD * math.Sqrt(l.gap(step)) }).Build(
		infer.Target{})
	if err != nil {
		return p, err
	}
	layout, err := infer.NewLayout(infer.Shapes{"rating": {teams}})
	if err != nil {
		return p, err
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		return p, err
	}
	state, err := transform.Init(start)
	if err != nil {
		return p, err
	}
	belief, err := of(state)
	if err != nil {
		return p, err
	}
	for i, g := range l.games {
		q2 := walkSD * walkSD * l.gap(i)
		p.log += math.Log(belief.foresee(g, q2)[g.result]) / float64(len(l.games))
		if i == 0 || q2 > 0 {
			p.record(g.day, belief, q2)
		}
		began := time.Now()
		err := torch.Do(func(scope *torch.Scope) error {
			batch := torch.Must(g.batch())
			next, info, err := transform.Update(state, batch)
			if err != nil {
				return err
			}
			if info.Diverged != nil {
				return fmt.Errorf("the likelihood of game %d is not finite", i+1)
			}
			method.Keep(scope, next)
			infer.Free(state)
			state = next
			return nil
		})
		if err != nil {
			return p, err
		}
		p.seconds += time.Since(began).Seconds()
		p.updates++
		if belief, err = of(state); err != nil {
			return p, err
		}
		if i == len(l.games)-1 || l.games[i+1].round > g.round {
			p.record(g.day, belief, 0)
			p.check(belief, l.ratings[g.round], len(l.days))
		}
	}
	infer.Free(state)
	return p, nil
}

// record remembers the bands.
func (p *path) record(day float64, n normal, q2 float64) {
	sd := make([]float64, teams)
	for i := range sd {
		sd[i] = n.sd(i, q2)
	}
	p.day, p.mean, p.sd = append(p.day, day), append(p.mean, n.mean), append(p.sd, sd)
}

// check counts the true ratings inside the bands after one of n rounds.
func (p *path) check(n normal, truth []float64, rounds int) {
	level := 0.0
	for _, r := range truth {
		level += r / teams
	}
	each := 1 / float64(teams*rounds)
	for i, r := range truth {
		if math.Abs(r-n.mean[i]) < band95*n.sd(i, 0) {
			p.inside += each
		}
		if mean, sd := n.relative(i); math.Abs(r-level-mean) < band95*sd {
			p.relative += each
		}
	}
}

// bounds are the mean log probabilities of the results under the true probabilities, and under the frequencies of the
// three results in these very games, which no constant model beats.
func (l league) bounds() (truth, constant float64) {
	var counts [results]float64
	for _, g := range l.games {
		r := l.ratings[g.round]
		truth += math.Log(chances(r[g.home] - r[g.away])[g.result]) / float64(len(l.games))
		counts[g.result]++
	}
	for _, c := range counts {
		if c > 0 {
			constant += c / float64(len(l.games)) * math.Log(c/float64(len(l.games)))
		}
	}
	return truth, constant
}
