package evidence

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/path"
)

// adapt moves step sizes towards the target acceptance, and at the ends of windows masses and rungs.
func (w *walk) adapt(accept []float64) error {
	a, n, d := w.at, w.size, w.mover.d
	a.Adapted++
	a.Tried += 0.5
	gain := math.Pow(1+float64(a.Adapted)/10, -0.6)
	for r := 1; r < n; r++ {
		own := make([]float64, w.chains)
		for c := range own {
			own[c] = accept[c*n+r]
		}
		if mean, ok := meanAccept(own); ok {
			a.Eps[r] *= math.Exp(gain * (mean - w.accept))
		}
	}
	for i := range a.Rows.Beta {
		for q := range d {
			v := a.Rows.X[i*d+q]
			a.Sum[i%n][q] += v
			a.Square[i%n][q] += v * v
		}
	}
	a.Count += float64(w.chains)
	if !w.ends(a.Round) {
		return nil
	}
	for r := range n {
		for q := range d {
			mean := a.Sum[r][q] / a.Count
			v := (a.Square[r][q]/a.Count - mean*mean) * a.Count / (a.Count - 1)
			if v = (v*a.Count + 1e-3*5) / (a.Count + 5); v > 0 && finite(v) {
				a.Scale[r][q] = v
			}
			a.Sum[r][q], a.Square[r][q] = 0, 0
		}
	}
	if w.adapts && a.Tried >= 1 {
		for r := range a.Refused {
			a.Refused[r] = math.Min(1, a.Refused[r]/a.Tried)
		}
		ladder, err := path.Equalize(a.Ladder, a.Refused, n)
		if err != nil {
			return err
		}
		a.Ladder = ladder
	}
	for r := range a.Refused {
		a.Refused[r] = 0
	}
	a.Adapted, a.Count, a.Tried = 0, 0, 0
	return w.evaluate()
}

// ends says whether a window of the warm-up ends after a number of rounds.
func (w *walk) ends(round int) bool {
	for _, part := range []int{2, 4, 8, 16, 24} { // of 32
		if round >= 4 && round == part*w.job.Warmup/32 {
			return true
		}
	}
	return false
}
