package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// settings are the sizes of a run.
type settings struct {
	train, test, validation int
	epochs                  int   // of Adam
	members                 int   // of the ensembles
	samples                 int   // draws of the approximations that are drawn from
	short, long             chain // of SGLD and SGHMC
	parallel                chain // of each chain of parallel SGHMC
	variational             int   // updates
	nutsWarmup, nutsDraws   int   // transitions of each of 4 chains
	nutsDepth               int
	side                    int // points of the grid in a row
	priorDraws              int // networks drawn from the prior at each width
	tangents                int // and those whose tangent kernels are taken
	descended               int // and those that are trained
	tuned                   tuned
}

// chain is the length of a run of stochastic-gradient MCMC, in updates.
type chain struct{ warmup, thin, draws int }

func (c chain) steps() int { return c.warmup + c.thin*c.draws }

var (
	full = settings{train: 300, test: 500, validation: 500, epochs: 200, members: 10, samples: 100,
		short: chain{200, 10, 100}, long: chain{10_000, 100, 100}, parallel: chain{8000, 200, 10},
		variational: 20_000, nutsWarmup: 150, nutsDraws: 100, nutsDepth: 8, side: 100, priorDraws: 5000, tangents: 40,
		descended: 30, tuned: chosen}
	quick = settings{train: 60, test: 60, validation: 60, epochs: 10, members: 3, samples: 10,
		short: chain{10, 2, 10}, long: chain{20, 2, 10}, parallel: chain{10, 5, 4},
		variational: 50, nutsWarmup: 5, nutsDraws: 5, nutsDepth: 3, side: 12, priorDraws: 1000, tangents: 5, descended: 2,
		tuned: chosen}
)

const (
	batchSize = 32
	adamRate  = 0.01
	bins      = 10  // of confidence
	farAway   = 1.0 // from all training data, for the points of the grid that count as off the data
)

// task is the data, the model and what all methods start from.
type task struct {
	settings
	seed                    uint64
	model                   model
	train, test, validation points
	grid                    points
	data                    infer.Batch
	mode                    infer.Params // the MAP, of shape [d]
	members                 infer.Params // of the deep ensemble, of shape [K, d]; the first is the MAP
	modeSeconds             float64
	traces                  map[string]*draws.Draws // of the samplers whose paths are looked at
	held                    map[string]int          // updates of each that were not finite and left out
	notes                   []string
}

func newTask(s settings, mlp nn.MLP, seed uint64, tau float64) (*task, error) {
	t := &task{settings: s, seed: seed, traces: map[string]*draws.Draws{}, held: map[string]int{}}
	var err error
	if t.model, err = newModel(mlp, tau, s.train); err != nil {
		return nil, err
	}
	for i, set := range []struct {
		points *points
		n      int
	}{{&t.train, s.train}, {&t.test, s.test}, {&t.validation, s.validation}} {
		if *set.points, err = moons(set.n, 3*seed+uint64(i)); err != nil {
			return nil, err
		}
	}
	if t.grid, err = grid(s.side); err != nil {
		return nil, err
	}
	t.data, err = t.train.batch()
	return t, err
}

// batches are shuffled minibatches of the training data.
func (t *task) batches() (infer.Batches, error) {
	return infer.Minibatches(t.data, infer.MinibatchOptions{Size: batchSize, Seed: t.seed})
}

// adamUpdates are the updates of the epochs of Adam.
func (t *task) adamUpdates() int {
	return t.epochs * ((t.settings.train + batchSize - 1) / batchSize)
}

// optimise runs Adam from k Kaiming normal starts.
func (t *task) optimise(ctx context.Context, k int) (infer.Params, error) {
	start, err := t.starts(k)
	if err != nil {
		return infer.Params{}, err
	}
	batches, err := t.batches()
	if err != nil {
		return infer.Params{}, err
	}
	r, err := infer.Run(ctx, t.program(t.model.logPosterior, start), optim.Adam{LR: infer.Constant(adamRate)},
		infer.Options{Chains: k, Warmup: t.adamUpdates() - 1, Draws: 1, Thin: 1, Batches: batches})
	if err != nil {
		return infer.Params{}, err
	}
	infer.Free(r.State)
	if k == 1 {
		r.Last.Flat = r.Last.Flat.Squeeze(0)
	}
	return r.Last, nil
}

// program is a mean log posterior, a start and the data.
func (t *task) program(mean infer.LogPosterior, start infer.Params) infer.Program {
	return infer.Handwritten(infer.Mean(mean, int(t.model.n)), start, t.data)
}

// starts are k draws of the initialiser, of shape [d] for k = 1 and [k, d] otherwise; the first are the
// same for each k.
func (t *task) starts(k int) (infer.Params, error) {
	streams := torch.NewStreams(t.seed, k)
	return nn.Init(t.model.net, nn.KaimingNormal(nn.GainReLU), &streams)
}

// params are all draws of a run as one point of shape [S, d].
func (t *task) params(d *draws.Draws) (infer.Params, error) {
	var flat []float64
	for c := range d.Chains() {
		for i := range d.Len(c) {
			flat = append(flat, d.Row(c, i)...)
		}
	}
	return infer.NewParams(t.model.net.Layout(), flat)
}

// outcome is what one method predicts for each set of points.
type outcome struct {
	method                 method
	seconds                float64 // to fit, with the MAP where the method starts there
	test, validation, grid prediction
	sd, epistemic          []float64 // at the points of the grid
	row                    rowJSON
	reliability            *score.Reliability
}

// run fits a method, and predicts.
func (t *task) run(ctx context.Context, m method) (outcome, error) {
	out := outcome{method: m}
	began := time.Now()
	predict, err := m.fit(t, ctx)
	if err != nil {
		return out, err
	}
	if out.seconds = time.Since(began).Seconds(); m.fromMode {
		out.seconds += t.modeSeconds
	}
	for _, set := range []struct {
		at   points
		into *prediction
	}{{t.test, &out.test}, {t.validation, &out.validation}, {t.grid, &out.grid}} {
		if *set.into, err = predict(set.at.at); err != nil {
			return out, fmt.Errorf("prediction: %w", err)
		}
	}
	if out.sd, out.epistemic, err = out.grid.spread(); err != nil {
		return out, err
	}
	return out, t.score(&out)
}

// score fills the row of the table.
func (t *task) score(o *outcome) error {
	both, logs := make([][]float64, len(o.test.p)), make([][]float64, len(o.test.p))
	for i, z := range o.test.z {
		l := score.BinaryLogProbabilities(z)
		both[i], logs[i] = []float64{sigmoid(-z), sigmoid(z)}, l[:]
	}
	scores, err := score.Score(logs, t.test.label)
	if err != nil {
		return err
	}
	brier, err := score.BrierOf(o.test.p, t.test.isOne(), score.Binning{Bins: bins})
	if err != nil {
		return err
	}
	if o.reliability, err = score.ClassCalibration(both, t.test.label, score.Binning{Bins: bins}); err != nil {
		return err
	}
	sd, epistemic, err := o.test.spread()
	if err != nil {
		return err
	}
	var far, farSD []float64
	for i, isFar := range t.grid.farFrom(t.train, farAway) {
		if isFar {
			far, farSD = append(far, o.epistemic[i]), append(farSD, o.sd[i])
		}
	}
	o.row = rowJSON{Name: o.method.name, Title: o.method.title, Accuracy: scores.Accuracy, NLL: finite(scores.LogLoss),
		Brier: brier.Score,
		ECE:   o.reliability.ECE, MCE: o.reliability.MCE,
		Seconds: o.seconds, Draws: len(o.test.logits), SD: mean(sd), SDFar: mean(farSD)}
	if len(o.test.logits) > 1 {
		auroc, err := score.AUROC(far, epistemic)
		if err != nil {
			return err
		}
		o.row.AUROC = &auroc
	}
	return nil
}

// finite is a number that JSON can hold.
func finite(x float64) float64 {
	if math.IsInf(x, 1) {
		return math.MaxFloat64
	}
	return x
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
