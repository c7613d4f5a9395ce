package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/imdb"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// reviewSettings are what the problem of the reviews depends on: the network of Wenzel et al. (2020), whose mode is
// looked for by Adam with the step of Duffield et al. (2024). After each epoch the point is scored on validation
// reviews, which are not trained with, and the epoch with the best NLL there counts.
type reviewSettings struct {
	Reviews    int          `json:"training_reviews"`
	Validation int          `json:"validation_reviews"`
	Tests      int          `json:"test_reviews"`
	Epochs     int          `json:"epochs"`
	Batch      int          `json:"batch"`
	LR         float64      `json:"learning_rate"`
	Variance   float64      `json:"prior_variance"`
	Embedding  float64      `json:"embedding_start"` // standard deviation of the embeddings at the start
	Eps        float64      `json:"adam_eps"`        // with 1e-8 words that a batch lacks would move as fast
	Seed       uint64       `json:"seed"`
	network    nn.CNNLSTM   // of this size
	data       [3]imdb.Data // to train with, to choose the epoch, and to test
	fewer      string       // says that the folder has fewer reviews than the run is made for; "" where it does not
}

// held is the share of the training reviews that are held out, to choose the epoch: one in ten.
const held = 10

// reviewScores is the result.
type reviewScores struct {
	Settings   reviewSettings     `json:"settings"`
	Updates    int                `json:"updates"`
	Validation []classify.Metrics `json:"validation"` // after each epoch
	Best       int                `json:"best_epoch"` // from 1
	Scores     classify.Metrics   `json:"scores"`     // of the best epoch, on the test reviews
}

// readReviews reads the reviews of the folder; without a folder it makes some up. More reviews than there are, where
// the flag was given, are an error.
func readReviews(o options) (s reviewSettings, err error) {
	s = reviewSettings{Reviews: o.reviews, Epochs: o.epochs, Batch: 32, LR: 1e-3, Variance: o.variance,
		Embedding: o.embedding, Eps: 1e-5, Seed: o.seed}
	if s.Epochs < 1 || s.Reviews < 1 || !(s.Variance > 0) || !(s.Embedding > 0) {
		return s, fmt.Errorf("epochs is %d, reviews %d, variance %g and embedding %g, all must be above 0", s.Epochs,
			s.Reviews, s.Variance, s.Embedding)
	}
	train, test := imdb.Synthetic(400, o.seed), imdb.Synthetic(200, o.seed+1)
	if o.data != "" {
		if train, test, err = imdb.Read(o.data); err != nil {
			return s, err
		}
	} else {
		s.network = nn.CNNLSTM{Vocab: 1000, Embedding: 8, Filters: 8, Hidden: 8}
		s.LR, s.Embedding = 1e-2, 0.3
	}
	if train, err = train.Shuffled(train.Len(), o.seed); err != nil {
		return s, err
	}
	// Parts of them must have both classes.
	if test, err = test.Shuffled(test.Len(), o.seed+1); err != nil {
		return s, err
	}
	// A tenth of the reviews that there are chooses the epoch; the others are trained with, as far as asked for.
	where := "the made-up data"
	if o.data != "" {
		where = o.data
	}
	if train.Len() < held {
		return s, fmt.Errorf("%s has %d training reviews: expected at least %d, one of which chooses the epoch", where,
			train.Len(), held)
	}
	out := train.Len() / held
	if o.preset != "" { // the papers choose no epoch
		out = 0
	}
	validation, rest := train.Part(0, out), train.Part(out, train.Len())
	if s.Reviews > rest.Len() {
		if o.given["reviews"] {
			return s, fmt.Errorf("-reviews is %d: expected from 1 to the %d that there are in %s beside the %d that are held "+
				"out", s.Reviews, rest.Len(), where, out)
		}
		s.fewer = fmt.Sprintf("Fewer than the %d training reviews that this run is made for: %d of %s, beside %d that are "+
			"held out.", s.Reviews, rest.Len(), where, out)
	}
	train = rest.Part(0, min(s.Reviews, rest.Len()))
	s.Reviews, s.Validation, s.Tests = train.Len(), validation.Len(), test.Len()
	s.data = [3]imdb.Data{train, validation, test}
	return s, nil
}

// fitReviews finds the mode of the posterior and scores it on the test reviews.
func fitReviews(ctx context.Context, s reviewSettings, observer infer.Observer) (*reviewScores, error) {
	net, err := s.network.Build()
	if err != nil {
		return nil, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(math.Sqrt(s.Variance))))
	if err != nil {
		return nil, err
	}
	n := s.Reviews
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		logLik := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return logLik.Add(prior.LogDensity(p).Div(float64(n))), nil
	}
	train := infer.Batch{}
	if train["x"], err = torch.FromSlice(s.data[0].Tokens, n, imdb.Length); err != nil {
		return nil, err
	}
	if train["y"], err = torch.FromSlice(s.data[0].Labels[:n]); err != nil {
		return nil, err
	}
	batches, err := infer.Minibatches(train, infer.MinibatchOptions{Size: min(s.Batch, n), Seed: s.Seed,
		DropLast: true})
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(s.Seed, 1)
	start, err := nn.Init(net, nn.PerSite(map[string]nn.Law{"1_embedding.weight": nn.Normal(s.Embedding)},
		nn.PyTorch()), &streams)
	if err != nil {
		return nil, err
	}
	if start, err = start.To(torch.CPU, dtype); err != nil {
		return nil, err
	}
	updates := s.Epochs * (n / min(s.Batch, n))
	// The last half of the updates has steps that fall to nothing: a mode, not a walk around it.
	half := updates / 2
	program := infer.Handwritten(infer.Mean(logPosterior, n), start, train)
	adam := optim.Adam{Eps: s.Eps, LR: func(step int) float64 {
		return s.LR * min(1, float64(updates-step)/float64(max(1, updates-half)))
	}}
	r := &reviewScores{Settings: s, Updates: updates}
	choose := &chooser{net: net, data: s.data[1], every: n / min(s.Batch, n), scores: r, then: observer}
	if _, err := infer.Run(ctx, program, adam, infer.Options{Chains: 1, Warmup: updates, Draws: infer.None,
		Start: start, Batches: batches, Seed: s.Seed, Observer: choose}); err != nil {
		return nil, err
	}
	if choose.err != nil {
		return nil, choose.err
	}
	best, err := infer.NewParams(net.Layout(), choose.best)
	if err != nil {
		return nil, err
	}
	if best, err = best.To(torch.CPU, dtype); err != nil {
		return nil, err
	}
	logp, err := reviewPredictions(net, best, s.data[2])
	if err != nil {
		return nil, err
	}
	r.Scores, err = classify.Score([][][]float64{logp}, s.data[2].Labels)
	return r, err
}

// chooser scores the point of each epoch on validation reviews, and keeps that of the best.
type chooser struct {
	net    *nn.Network
	data   imdb.Data
	every  int // updates of an epoch
	scores *reviewScores
	then   infer.Observer
	best   []float64 // its point
	err    error
}

// Observe scores at the end of an epoch.
func (c *chooser) Observe(p infer.Progress) {
	if c.then != nil {
		c.then.Observe(p)
	}
	if c.err != nil || p.Step%c.every != 0 {
		return
	}
	logp, err := reviewPredictions(c.net, p.State.Position(), c.data)
	if err != nil {
		c.err = err
		return
	}
	m, err := classify.Score([][][]float64{logp}, c.data.Labels)
	if err != nil {
		c.err = err
		return
	}
	r := c.scores
	r.Validation = append(r.Validation, m)
	if r.Best > 0 && m.NLL >= r.Validation[r.Best-1].NLL {
		return
	}
	r.Best = len(r.Validation)
	c.best, c.err = p.State.Position().Values()
}

// reviewPredictions are the log probabilities of the classes, [review][class], at one point.
func reviewPredictions(net *nn.Network, last infer.Params, d imdb.Data) (rows [][]float64, err error) {
	const block = 500
	for from := 0; from < d.Len(); from += block {
		n := min(block, d.Len()-from)
		err = torch.Do(func(*torch.Scope) error {
			x, err := torch.FromSlice(d.Tokens[from*imdb.Length:(from+n)*imdb.Length], n, imdb.Length)
			if err != nil {
				return err
			}
			at := infer.Params{Layout: last.Layout, Flat: last.Flat.Reshape(-1)}
			out, err := net.Predict(at, x, nil)
			if err != nil {
				return err
			}
			for v := out.LogSoftmax(-1).Values(); len(v) > 0; v = v[imdb.Classes:] {
				rows = append(rows, v[:imdb.Classes])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// runReviews is the command for -problem imdb.
func runReviews(ctx context.Context, w io.Writer, o options) error {
	s, err := readReviews(o)
	if err != nil {
		return err
	}
	r, err := fitReviews(ctx, s, o.observer)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(r)
	}
	p := &printer{w: w}
	if s.fewer != "" {
		p.f("%s\n", s.fewer)
	}
	p.f("CNN-LSTM, prior N(0, %g), %d training reviews; epochs are judged by %d others:\n", s.Variance, s.Reviews,
		s.Validation)
	for i, m := range r.Validation {
		p.f("epoch %2d: accuracy %.4f, NLL %.4f\n", i+1, m.Accuracy, m.NLL)
	}
	m := r.Scores
	p.f("epoch %d on %d test reviews: accuracy %.4f ± %.4f, NLL %.4f, Brier %.4f, ECE %.4f\n", r.Best, s.Tests,
		m.Accuracy, math.Sqrt(m.Accuracy*(1-m.Accuracy)/float64(s.Tests)), m.NLL, m.Brier, m.ECE)
	return p.err
}
