package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/imdb"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// studySettings are everything that the table of all methods depends on.
type studySettings struct {
	Version      int       `json:"version"`
	Problem      string    `json:"problem"`
	Data         string    `json:"data"`            // "real", or "made up"
	TrainSHA     string    `json:"train_sha256"`    // fingerprints of inputs and labels
	TestSHA      string    `json:"test_sha256"`     // of the test cases that are scored
	Embedding    float64   `json:"embedding_start"` // standard deviation of the embeddings at the start; 0 for digits
	Train        int       `json:"training_cases"`
	Tests        int       `json:"test_cases"`
	Variance     float64   `json:"prior_variance"`
	Batch        int       `json:"batch"`
	Temperatures []float64 `json:"temperatures"`
	Seeds        int       `json:"seeds"`
	Seed         uint64    `json:"seed"` // the first of them
	Members      int       `json:"members"`
	Draws        int       `json:"draws"` // networks of a chain, and of a distribution
	// Modes by Adam, whose step falls to 0 in the second half of the updates.
	ModeUpdates int     `json:"mode_updates"`
	ModeLR      float64 `json:"mode_learning_rate"`
	ModeEps     float64 `json:"mode_eps"`
	// Samplers start at the modes; draws are those at the ends of cycles, after some at the temperature.
	Cycle    int     `json:"cycle"` // updates
	Settle   int     `json:"settle"`
	LR       float64 `json:"learning_rate"`
	Momentum float64 `json:"momentum"`
	SGLD     float64 `json:"sgld_learning_rate"`
	// Variational fits by Adam in the same way, from the mode.
	FitUpdates int     `json:"fit_updates"`
	FitSamples int     `json:"fit_samples"`
	FitScale   float64 `json:"fit_start"` // standard deviation at the start
	// Presets alone have these. With Begin, the updates before the first cycle, samplers start at random and not at modes.
	Network     nn.CNNLSTM `json:"network,omitzero"`
	Walks       []string   `json:"walks,omitempty"` // samplers by their files; none are all
	Begin       int        `json:"begin,omitempty"`
	MassEvery   int        `json:"mass_every,omitempty"` // updates; 0 is Cycle
	MassBatches int        `json:"mass_batches,omitempty"`
	Published   *duffield  `json:"published,omitempty"`
}

// digitsStudy takes about nine minutes of one core, reviewsStudy an hour.
func digitsStudy(seed uint64) studySettings {
	return studySettings{Version: 2, Problem: "digits", Train: 500, Variance: 1, Batch: 100,
		Temperatures: []float64{0.01, 0.1, 0.32, 1}, Seeds: 3, Seed: seed, Members: 4, Draws: 10,
		ModeUpdates: 3000, ModeLR: 0.01, ModeEps: 1e-8, Cycle: 300, Settle: 5, LR: 0.03, Momentum: 0.98, SGLD: 0.05,
		FitUpdates: 3000, FitSamples: 4, FitScale: 0.02}
}

func reviewsStudy(seed uint64) studySettings {
	return studySettings{Version: 3, Problem: "imdb", Train: 5000, Tests: 1000, Variance: 1, Batch: 32,
		Temperatures: []float64{0.01, 0.1, 1}, Seeds: 3, Seed: seed, Members: 2, Draws: 3, ModeUpdates: 312, ModeLR: 1e-3,
		ModeEps: 1e-5, Cycle: 78, Settle: 1, LR: 0.1, Momentum: 0.9, SGLD: 0.1, FitUpdates: 156, FitSamples: 2,
		FitScale: 0.005}
}

// small is a study of a few seconds.
func (s studySettings) small() studySettings {
	s.Temperatures, s.Seeds, s.Members, s.Draws = []float64{0.1, 1}, 2, 2, 2
	s.ModeUpdates, s.FitUpdates, s.Cycle, s.Settle, s.FitSamples = 40, 20, 10, 1, 2
	s.Train, s.Tests = 100, 50
	return s
}

// passed has modes of so many passes over the training cases. A variational fit makes half of their updates, and a
// cycle is a quarter of them, as in reviewsStudy.
func (s studySettings) passed(epochs int) studySettings {
	n := s.Train
	s.ModeUpdates = epochs * (n / min(s.Batch, n))
	s.FitUpdates, s.Cycle = max(1, s.ModeUpdates/2), max(1, s.ModeUpdates/4)
	return s
}

// study is the table of all methods on one problem.
type study struct {
	Settings studySettings `json:"settings"`
	Rows     []row         `json:"rows"`

	task    *classify.Task
	law     nn.Scheme         // of the starts
	tables  map[string]string // sites of which a case sees a few rows
	dir     string
	every   int
	readAll bool   // configurational temperatures, which are of all training cases
	fewer   string // says that there are fewer cases than the study is made for; "" where there are not
}

// newStudy reads the data of the problem that the options name.
func newStudy(o options) (*study, error) {
	if o.problem == "imdb" {
		return reviewStudy(o)
	}
	s := &study{Settings: digitsStudy(o.seed), law: start, dir: filepath.Join(o.dir, "methods-digits"), every: o.every,
		readAll: true}
	hidden := []int{32, 32}
	if o.quick {
		s.Settings, s.dir, hidden = s.Settings.small(), filepath.Join(o.dir, "quick", "methods-digits"), []int{8}
	}
	train, test, err := digits.Split(s.Settings.Train)
	if err != nil {
		return nil, err
	}
	if s.task, err = newTask(hidden, digits.Classes, train, test); err != nil {
		return nil, err
	}
	s.Settings.Tests, s.Settings.Data = len(s.task.Labels), "real"
	s.Settings.TrainSHA = grid.Fingerprint(train.Pixels, train.Labels)
	s.Settings.TestSHA = grid.Fingerprint(test.Pixels, test.Labels)
	return s, nil
}

// reviewStudy has the reviews, a part of the test reviews, and the CNN-LSTM.
func reviewStudy(o options) (*study, error) {
	s := &study{Settings: reviewsStudy(o.seed), dir: filepath.Join(o.dir, "methods-imdb"), every: o.every,
		tables: map[string]string{embedding: "x"}}
	if o.quick {
		s.Settings, s.dir = s.Settings.small(), filepath.Join(o.dir, "quick", "methods-imdb")
	}
	if o.preset != "" {
		var err error
		if s.Settings, err = o.published(); err != nil {
			return nil, err
		}
		s.dir, o.variance = filepath.Join(o.dir, o.preset), s.Settings.Variance
	}
	sized := o.preset == "" && (o.given["reviews"] || o.given["epochs"])
	if !o.given["reviews"] {
		o.reviews = s.Settings.Train
	}
	r, err := readReviews(o)
	if err != nil {
		return nil, err
	}
	s.fewer = r.fewer
	if here := r.data[2].Len(); s.Settings.Tests > here {
		s.fewer = strings.TrimSpace(fmt.Sprintf("%s\nFewer than the %d test reviews that this run is made for: there are "+
			"%d.", s.fewer, s.Settings.Tests, here))
	}
	s.Settings.Variance, s.Settings.Embedding, s.Settings.Data = r.Variance, r.Embedding, "real"
	if o.data == "" {
		s.Settings.Data = "made up"
	}
	s.law = nn.PerSite(map[string]nn.Law{embedding: nn.Normal(r.Embedding)}, nn.PyTorch())
	if o.data != "" {
		r.network = s.Settings.Network
	}
	net, err := r.network.Build()
	if err != nil {
		return nil, err
	}
	var sets [2]classify.Set
	prints := [2]*string{&s.Settings.TrainSHA, &s.Settings.TestSHA}
	for i, d := range []imdb.Data{r.data[0], r.data[2].Part(0, min(s.Settings.Tests, r.data[2].Len()))} {
		sets[i].Labels, *prints[i] = d.Labels, grid.Fingerprint(d.Tokens, d.Labels)
		if sets[i].X, err = torch.FromSlice(d.Tokens, d.Len(), imdb.Length); err != nil {
			return nil, err
		}
	}
	s.Settings.Train, s.Settings.Tests = len(sets[0].Labels), len(sets[1].Labels)
	if sized {
		s.Settings = s.Settings.passed(o.epochs)
	}
	s.task, err = classify.New(net, nn.Same(nn.Normal(math.Sqrt(r.Variance))), sets[0], sets[1], dtype)
	return s, err
}

// compute runs what is left of the study: first the modes, and then what starts at them.
func (s *study) compute(ctx context.Context, o options) error {
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	var all []entry
	stages := [][]grid.Cell[[]entry]{s.modeCells(), s.posteriorCells()}
	if s.Settings.ModeUpdates == 0 {
		stages = stages[1:]
	}
	for _, cells := range stages {
		results, err := (&grid.Grid[[]entry]{Settings: s.Settings, Dir: s.dir, Workers: o.workers, Observer: o.observer,
			Cells: cells}).Run(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			all = append(all, r...)
		}
	}
	s.Rows = rowsOf(s.Settings, all)
	return nil
}

// runStudy is the command for -methods.
func runStudy(ctx context.Context, w io.Writer, o options) error {
	s, err := newStudy(o)
	if err != nil {
		return err
	}
	if err := s.compute(ctx, o); err != nil {
		return err
	}
	if err := s.plot(); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(s)
	}
	if err := s.print(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nThe pictures are in %s.\n", s.dir)
	return err
}

// embedding is the site of the embeddings of a [nn.CNNLSTM].
const embedding = "1_embedding.weight"

// name is that of a cell.
func (s *study) name(what string, temperature float64, seed int) string {
	if temperature == 0 {
		return fmt.Sprintf("%s-seed-%d", what, seed)
	}
	return fmt.Sprintf("%s-%g-seed-%d", what, temperature, seed)
}

// batches are those of a seed.
func (s *study) batches(seed int) (infer.Batches, error) {
	return infer.Minibatches(s.task.Train, infer.MinibatchOptions{Size: min(s.Settings.Batch, s.task.N),
		Seed: s.Settings.Seed + uint64(seed), DropLast: true})
}
