package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/imdb"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// reviewSettings are what the problem of the reviews depends on: the network of Wenzel et al. (2020) with the prior and
// the step of Duffield et al. (2024), whose mode is found by Adam.
type reviewSettings struct {
	Reviews  int          `json:"training_reviews"`
	Tests    int          `json:"test_reviews"`
	Epochs   int64        `json:"epochs"`
	Batch    int64        `json:"batch"`
	LR       float64      `json:"learning_rate"`
	Variance float64      `json:"prior_variance"`
	Seed     uint64       `json:"seed"`
	network  nn.CNNLSTM   // of this size
	data     [2]imdb.Data // to train with and to test
}

// reviewScores is the result.
type reviewScores struct {
	Settings reviewSettings `json:"settings"`
	Updates  int64          `json:"updates"`
	Scores   metrics        `json:"scores"`
}

// readReviews takes them of the folder, or makes some where there is none.
func readReviews(o options) (s reviewSettings, err error) {
	s = reviewSettings{Reviews: o.reviews, Epochs: o.epochs, Batch: 32, LR: 1e-3, Variance: 1.0 / 40, Seed: o.seed}
	train, test := imdb.Synthetic(400, o.seed), imdb.Synthetic(200, o.seed+1)
	if o.data != "" {
		if train, test, err = imdb.Read(o.data); err != nil {
			return s, err
		}
	} else {
		s.network = nn.CNNLSTM{Vocab: 1000, Embedding: 8, Filters: 8, Hidden: 8}
		// Under the narrow prior the mode of so few reviews is a network of zeros.
		s.LR, s.Variance = 1e-2, 1
	}
	if train, err = train.Shuffled(min(s.Reviews, train.Len()), o.seed); err != nil {
		return s, err
	}
	s.Reviews, s.Tests, s.data = train.Len(), test.Len(), [2]imdb.Data{train, test}
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
	n := int64(s.Reviews)
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		logLik := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return logLik.Add(prior.LogDensity(p).Div(float64(n))), nil
	}
	train := infer.Batch{}
	if train["x"], err = torch.FromSlice(s.data[0].Tokens, n, imdb.Length); err != nil {
		return nil, err
	}
	labels := make([]int64, n)
	for i, label := range s.data[0].Labels {
		labels[i] = int64(label)
	}
	if train["y"], err = torch.FromSlice(labels); err != nil {
		return nil, err
	}
	batches, err := infer.Minibatches(train, infer.MinibatchOptions{Size: min(s.Batch, n), Seed: s.Seed,
		DropLast: true})
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(s.Seed, 1)
	start, err := nn.Init(net, nn.PyTorch(), &streams)
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
	adam := optim.Adam{LR: func(step int64) float64 {
		return s.LR * min(1, float64(updates-step)/float64(max(1, updates-half)))
	}}
	run, err := infer.Run(ctx, program, adam, infer.Options{Chains: 1, Warmup: int(updates), Draws: infer.None,
		Start: start, Batches: batches, Seed: s.Seed, Observer: observer})
	if err != nil {
		return nil, err
	}
	logp, err := reviewPredictions(net, run.Last, s.data[1])
	if err != nil {
		return nil, err
	}
	m, err := scored([][][]float64{logp}, s.data[1].Labels)
	return &reviewScores{Settings: s, Updates: updates, Scores: m}, err
}

// reviewPredictions are the log probabilities of the classes, [review][class], at the last point of a run.
func reviewPredictions(net *nn.Network, last infer.Params, d imdb.Data) (rows [][]float64, err error) {
	const block = 500
	for from := 0; from < d.Len(); from += block {
		n := min(block, d.Len()-from)
		err = torch.Do(func(*torch.Scope) error {
			x, err := torch.FromSlice(d.Tokens[from*imdb.Length:(from+n)*imdb.Length], int64(n), imdb.Length)
			if err != nil {
				return err
			}
			at := infer.Params{Layout: last.Layout, Flat: last.Flat.MustReshape([]int64{-1}, false)}
			out, err := net.Predict(at, torch.Of(x), nil)
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
	m := r.Scores
	_, err = fmt.Fprintf(w,
		"MAP of the CNN-LSTM, %d training reviews, %d epochs, %d updates:\naccuracy %.4f ± %.4f, NLL %.4f, "+
			"Brier %.4f, ECE %.4f on %d test reviews\n", s.Reviews, s.Epochs, r.Updates, m.Accuracy,
		math.Sqrt(m.Accuracy*(1-m.Accuracy)/float64(s.Tests)), m.NLL, m.Brier, m.ECE, s.Tests)
	return err
}
