package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// history is what one method did with one seed.
type history struct {
	loss    [episodes][episodes]float64 // [after][of]: mean squared error of the mean against the true function
	nlpd    [episodes][episodes]float64 // [after][of]: mean negative log predictive density of a new observation
	fits    []prediction                // on the grid, after each episode; nil where they are not asked for
	seconds float64
}

// scores are the mean squared error, and the negative log predictive density expected of a new observation y ~ N(f,
// noise²) under N(mean, sd² + noise²).
func scores(p prediction, s series) (loss, nlpd float64) {
	for i, f := range s.y {
		square, v := (p.mean[i]-f)*(p.mean[i]-f), p.sd[i]*p.sd[i]+noise*noise
		loss += square / float64(len(s.y))
		nlpd += (0.5*math.Log(2*math.Pi*v) + (square+noise*noise)/(2*v)) / float64(len(s.y))
	}
	return loss, nlpd
}

// at predicts a series with a learner.
func at(l learner, s series) (p prediction, err error) {
	err = torch.Do(func(*torch.Scope) error {
		batch := torch.Must(s.batch())
		p, err = l.predict(infer.Batch{"x": batch["x"]})
		return err
	})
	return p, err
}

// follow shows a learner one episode after another, and examines it on all of them each time.
func follow(ctx context.Context, m method, seed uint64, data []series, fits bool) (h history, err error) {
	l, err := m.learner(seed)
	if err != nil {
		return h, fmt.Errorf("%s: %w", m.title, err)
	}
	for n, episode := range data {
		began := time.Now()
		if err := l.learn(ctx, episode); err != nil {
			return h, fmt.Errorf("%s, episode %d: %w", m.title, n+1, err)
		}
		h.seconds += time.Since(began).Seconds()
		for j := range data {
			s := exam(j)
			p, err := at(l, s)
			if err != nil {
				return h, fmt.Errorf("%s, after episode %d: %w", m.title, n+1, err)
			}
			h.loss[n][j], h.nlpd[n][j] = scores(p, s)
		}
		if fits {
			p, err := at(l, grid())
			if err != nil {
				return h, fmt.Errorf("%s, after episode %d: %w", m.title, n+1, err)
			}
			h.fits = append(h.fits, p)
		}
	}
	return h, nil
}

// single is the loss on each episode of a model that sees that episode alone: the first one that the method learns.
func single(ctx context.Context, m method, seed uint64, data []series) (loss [episodes]float64, err error) {
	for j, episode := range data {
		l, err := m.learner(seed)
		if err != nil {
			return loss, err
		}
		if err := l.learn(ctx, episode); err != nil {
			return loss, fmt.Errorf("a model of episode %d alone: %w", j+1, err)
		}
		p, err := at(l, exam(j))
		if err != nil {
			return loss, err
		}
		loss[j], _ = scores(p, exam(j))
	}
	return loss, nil
}

// excess is the mean over the episodes seen so far of the loss minus that of a model trained on the episode alone,
// after each episode: what was forgotten, less what one episode taught about another. (Duffield et al. 2025, figure 6.)
func excess(loss [episodes][episodes]float64, single [episodes]float64) (e [episodes]float64) {
	for n := range e {
		for j := range n + 1 {
			e[n] += (loss[n][j] - single[j]) / float64(n+1)
		}
	}
	return e
}

// estimate is a mean over seeds and its standard error.
type estimate struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"` // 0 for one seed
}

func over(values []float64) estimate {
	if len(values) == 1 {
		return estimate{Mean: values[0]}
	}
	mean, sd := stat.MeanStdDev(values, nil)
	return estimate{Mean: mean, SE: sd / math.Sqrt(float64(len(values)))}
}
