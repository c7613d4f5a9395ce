package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
)

// In a season each team meets each other once at home and once away, and plays once a round.
func TestFixtures(t *testing.T) {
	met := map[[2]int]int{}
	for round := range rounds {
		playing := map[int]int{}
		for _, pair := range fixtures(round) {
			met[pair]++
			playing[pair[0]]++
			playing[pair[1]]++
		}
		require.Len(t, playing, teams, "round %d", round)
	}
	require.Len(t, met, teams*(teams-1))
	for pair, n := range met {
		require.NotEqual(t, pair[0], pair[1])
		require.Equal(t, 1, n)
	}
}

// The simulation has the law that it says: steps of the ratings with the standard deviation of a walk over their days,
// and results as often as their probabilities, within four standard errors.
func TestSimulation(t *testing.T) {
	var z2, n, games float64
	var excess, variance [results]float64
	for seed := range uint64(4) {
		l, err := simulate(seed, false)
		require.NoError(t, err)
		require.Len(t, l.games, seasons*rounds*teams/2)
		require.Equal(t, 365.0, l.days[rounds])
		for r, now := range l.ratings {
			for i, x := range now {
				z := x
				if r > 0 {
					z = (x - l.ratings[r-1][i]) / (0.1 * math.Sqrt(l.days[r]-l.days[r-1]))
				}
				z2, n = z2+z*z, n+1
			}
		}
		for _, g := range l.games {
			p := chances(l.ratings[g.round][g.home] - l.ratings[g.round][g.away])
			excess[g.result]++
			for i := range p {
				excess[i] -= p[i]
				variance[i] += p[i] * (1 - p[i])
			}
			games++
		}
	}
	assert.InDelta(t, 1, z2/n, 4*math.Sqrt(2/n))
	for i := range excess {
		assert.Less(t, math.Abs(excess[i]), 4*math.Sqrt(variance[i]), "result %d", i)
	}
}

// The log probabilities on tensors are those in plain Go, and the three of a game add up to 1.
func TestModel(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"rating": {teams}})
	require.NoError(t, err)
	ratings := make([]float64, teams)
	for i := range ratings {
		ratings[i] = 0.7*float64(i) - 5
	}
	p, err := infer.NewParams(layout, ratings)
	require.NoError(t, err)
	for _, pair := range [][2]int{{0, 1}, {3, 12}, {19, 0}} {
		total := 0.0
		for result := range results {
			b, err := game{home: pair[0], away: pair[1], result: result}.batch()
			require.NoError(t, err)
			log := outer(forward(p, b), b).Item()
			want := chances(ratings[pair[0]] - ratings[pair[1]])[result]
			assert.InDelta(t, want, math.Exp(log), 1e-14)
			total += math.Exp(log)
		}
		assert.InDelta(t, 1, total, 1e-12)
	}
}

// Predictions are averages over the ratings: against draws of them, within four standard errors. They add up to 1. The
// covariance of the two teams and the step of the walk count.
func TestForesight(t *testing.T) {
	n := normal{mean: make([]float64, teams), cov: make([][]float64, teams)}
	for i := range n.cov {
		n.cov[i] = make([]float64, teams)
		n.cov[i][i] = 1
	}
	n.mean[2], n.mean[5] = 1.3, -0.4
	n.cov[2][2], n.cov[5][5], n.cov[2][5], n.cov[5][2] = 1.5, 0.8, 0.6, 0.6
	const q2, draws = 0.3, 200_000
	p := n.foresee(game{home: 2, away: 5}, q2)
	random := rand.New(rand.NewPCG(1, 2))
	var sum, square [results]float64
	for range draws {
		a := math.Sqrt(1.5) * random.NormFloat64()
		b := 0.6/1.5*a + math.Sqrt(0.8-0.6*0.6/1.5)*random.NormFloat64()
		a, b = a+math.Sqrt(q2)*random.NormFloat64(), b+math.Sqrt(q2)*random.NormFloat64()
		for i, c := range chances(1.3 + a - (-0.4 + b)) {
			sum[i] += c / draws
			square[i] += c * c / draws
		}
	}
	total := 0.0
	for i := range p {
		assert.InDelta(t, sum[i], p[i], 4*math.Sqrt((square[i]-sum[i]*sum[i])/draws))
		total += p[i]
	}
	assert.InDelta(t, 1, total, 1e-12)

	// Less the mean of two correlated and eighteen independent ratings: the variance of Σ c_i r_i with c = e_2 − 1/20.
	mean, sd := n.relative(2)
	assert.InDelta(t, 1.3-0.9/20, mean, 1e-12)
	c, other := 0.95, -0.05
	assert.InDelta(t, math.Sqrt(c*c*1.5+other*other*(0.8+18)+2*c*other*0.6), sd, 1e-12)
}

// The first update of the Gauss-Newton filter against its equations in plain Go, for the two teams that play.
func TestFirstUpdate(t *testing.T) {
	transform, err := filters()[0].method(infer.Constant(0)).Build(infer.Target{})
	require.NoError(t, err)
	layout, err := infer.NewLayout(infer.Shapes{"rating": {teams}})
	require.NoError(t, err)
	start, err := infer.Zeros(layout)
	require.NoError(t, err)
	state, err := transform.Init(start)
	require.NoError(t, err)
	b, err := game{home: 4, away: 9, result: homeWin}.batch()
	require.NoError(t, err)
	state, _, err = transform.Update(state, b)
	require.NoError(t, err)
	require.IsType(t, ekf.DenseState{}, state)
	n, err := of(state)
	require.NoError(t, err)
	// At d = 0: log P = log σ(d − 1), slope s = 1 − σ(−1), curvature h = σ(−1)(1 − σ(−1)). With the prior I and x = e_4 −
	// e_9 the covariance is I − xxᵀ h/(1 + 2h), and the mean that times s x.
	win := sigmoid(-1)
	s, h := 1-win, win*(1-win)
	assert.InDelta(t, s/(1+2*h), n.mean[4], 1e-12)
	assert.InDelta(t, -s/(1+2*h), n.mean[9], 1e-12)
	assert.InDelta(t, 1-h/(1+2*h), n.cov[4][4], 1e-12)
	assert.InDelta(t, h/(1+2*h), n.cov[4][9], 1e-12)
	assert.InDelta(t, 0, n.mean[0], 1e-15)
	assert.InDelta(t, 1, n.cov[0][0], 1e-12)
}

// The filters on short leagues: they predict better than the best constant model and not better than the truth, and the
// bands of Gauss-Newton hold at least 90 % of the true ratings, within four standard errors. The files are there.
func TestShortRun(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "deep", "online.png")
	var out bytes.Buffer
	require.NoError(t, run(&out, options{json: true, quick: true, picture: picture, seed: 1, leagues: 4}))
	var s summaryJSON
	require.NoError(t, json.Unmarshal(out.Bytes(), &s))
	require.Equal(t, 150, s.Games)
	require.Len(t, s.Filters, 3)
	for _, f := range s.Filters {
		assert.Greater(t, f.Gain.Mean, 4*f.Gain.SE, f.Name)
		assert.Greater(t, f.Loss.Mean, 0.0, f.Name)
		assert.Greater(t, f.Rate, 0.0, f.Name)
		assert.InDelta(t, f.Log.Mean, s.Constant.Mean+f.Gain.Mean, 1e-12, f.Name)
	}
	gauss := s.Filters[0]
	require.Equal(t, "gauss_newton", gauss.Name)
	assert.Greater(t, gauss.Inside.Mean, 0.9-4*gauss.Inside.SE)
	assert.Less(t, gauss.Inside.Mean, 0.999)
	assert.FileExists(t, picture)

	// The same seed gives the same numbers; the tables are printed.
	var again, table bytes.Buffer
	require.NoError(t, run(&again, options{json: true, quick: true, picture: picture, seed: 1, leagues: 1}))
	require.NoError(t, run(&table, options{quick: true, picture: picture, seed: 1, leagues: 1}))
	var one summaryJSON
	require.NoError(t, json.Unmarshal(again.Bytes(), &one))
	assert.Contains(t, table.String(), "Gauss-Newton")
	assert.Contains(t, table.String(), picture)
	assert.Zero(t, one.Filters[0].Log.SE)
}

// A band that is too narrow, and a filter that learns nothing, are seen by the figures of the test above.
func TestFiguresTell(t *testing.T) {
	l, err := simulate(1, true)
	require.NoError(t, err)
	narrow := filter{"narrow", "", func(infer.Schedule) infer.Method {
		return ekf.GaussNewton{Forward: forward, Outer: outer, InitSD: 0.1}
	}}
	p, err := follow(narrow, l)
	require.NoError(t, err)
	assert.Less(t, p.inside, 0.7)
	blind := filter{"blind", "", func(infer.Schedule) infer.Method {
		return ekf.GaussNewton{Forward: forward, Outer: outer, LR: infer.Constant(0), InitSD: 1e-6}
	}}
	p, err = follow(blind, l)
	require.NoError(t, err)
	_, constant := l.bounds()
	assert.LessOrEqual(t, p.log, constant)
}

func TestOptions(t *testing.T) {
	require.ErrorContains(t, run(nil, options{leagues: 0}), "leagues is 0")
}
