package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

const (
	teams     = 20
	seasons   = 2
	rounds    = 2 * (teams - 1) // of a season: each team meets each other at home and away
	week      = 7               // days between rounds
	summer    = 99              // days without games more
	walkSD    = 0.1             // of a rating over a day
	threshold = 1               // P(home wins) = σ(d − threshold), P(away wins) = 1 − σ(d + threshold)
)

// The results of a game.
const (
	homeWin = iota
	tie
	awayWin
	results
)

// game is one match.
type game struct {
	round      int
	day        float64
	home, away int
	result     int
}

// league is simulated games and the true ratings behind them.
type league struct {
	games   []game
	days    []float64   // of the rounds
	ratings [][]float64 // at each round, [rounds][teams]
}

// sigmoid is σ(x) = 1/(1 + e^−x).
func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// chances are the probabilities of home win, draw and away win at a difference d of the ratings.
func chances(d float64) [results]float64 {
	h, a := sigmoid(d-threshold), sigmoid(-d-threshold)
	return [results]float64{h, 1 - h - a, a}
}

// simulate draws ratings from N(0, 1) that walk at random, N(0, walkSD²) a day, and a result for each game of a fixture
// list. With quick there is one short season.
func simulate(seed uint64, quick bool) (l league, err error) {
	n := seasons * rounds
	if quick {
		n = 15
	}
	var steps, uniform []float64
	err = torch.Do(func(*torch.Scope) error {
		source := torch.NewSource(seed, 0)
		z := torch.Must(source.Normal([]int{n * teams}, gotch.Double, torch.CPU))
		u := torch.Must(source.Uniform([]int{n * teams / 2}, gotch.Double, torch.CPU))
		steps = torch.Must(torch.ToSlice[float64](z))
		uniform, err = torch.ToSlice[float64](u)
		return err
	})
	if err != nil {
		return l, err
	}
	for r := range n {
		l.days = append(l.days, float64(r*week+r/rounds*summer))
		now := make([]float64, teams)
		for i := range now {
			if r == 0 {
				now[i] = steps[i]
				continue
			}
			now[i] = l.ratings[r-1][i] + walkSD*math.Sqrt(l.days[r]-l.days[r-1])*steps[r*teams+i]
		}
		l.ratings = append(l.ratings, now)
		for _, pair := range fixtures(r % rounds) {
			p := chances(now[pair[0]] - now[pair[1]])
			u, result := uniform[len(l.games)], homeWin
			for result < awayWin && u > p[result] {
				u -= p[result]
				result++
			}
			l.games = append(l.games, game{round: r, day: l.days[r], home: pair[0], away: pair[1], result: result})
		}
	}
	return l, nil
}

// fixtures is who plays whom, home first, in a round of a season: the last team stays and the others move round a
// circle. In the second half of a season home and away change places.
func fixtures(round int) [][2]int {
	const circle = teams - 1
	k := round % circle
	pairs := [][2]int{{k, circle}}
	for i := 1; i <= circle/2; i++ {
		pairs = append(pairs, [2]int{(k + i) % circle, (k - i + circle) % circle})
	}
	for i := range pairs {
		if (k+i)%2 == 1 != (round >= circle) { // home and away take turns
			pairs[i][0], pairs[i][1] = pairs[i][1], pairs[i][0]
		}
	}
	return pairs
}

// gap is the number of days between a game and the one before it.
func (l league) gap(i int) float64 {
	if i == 0 {
		return 0
	}
	return l.games[i].day - l.games[i-1].day
}
