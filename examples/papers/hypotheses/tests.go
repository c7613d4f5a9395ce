package main

import (
	"fmt"
	"slices"
)

// row is a line of the table of a test: the trials of one setting, which differ in their seeds.
type row struct {
	name, group string // rows of a group differ in the temperature alone; "" is no group
	temperature float64
	trial       func(o options, seed uint64) trial
}

// column is a measured value.
type column struct {
	value, title string
	percent      bool
}

// test is one hypothesis.
type test struct {
	name, about string
	question    string
	rows        func(o options) []row
	columns     []column
	loss        string // the value that groups compare among temperatures; "" for none
	tuned       string // what of the settings was tuned; "" is what was of base
}

// tuning says what of the settings of a test was tuned, and what was not.
func (t test) tuning(o options) string {
	if t.tuned != "" {
		return t.tuned
	}
	s := base(o, o.seed)
	text := fmt.Sprintf("Tuned: the learning rate alone, %g, by -tune, at T = 1 and the settings that all tests start "+
		"from. Momentum, cycles and lengths are not tuned, and rows with other settings have the same learning rate.", s.LR)
	if o.quick {
		text += " It was tuned for the settings of full size, not for those of -quick."
	}
	return text
}

// temperatures of the tests that ask which is best.
var cold = []float64{0.01, 0.1, 1}

// always are settings of every size.
func always[S any](settings []S) func(o options) []S { return func(options) []S { return settings } }

// unlessQuick are settings in the place of which -quick has others, for its few training images.
func unlessQuick[S any](whole, quick []S) func(o options) []S {
	return func(o options) []S {
		if o.quick {
			return quick
		}
		return whole
	}
}

// over makes a row of each setting at each temperature.
func over[S any](settings func(options) []S, name func(S) string, change func(S, *sampling)) func(o options) []row {
	return func(o options) (rows []row) {
		for _, setting := range settings(o) {
			for _, temperature := range cold {
				rows = append(rows, row{name: fmt.Sprintf("%s, T = %g", name(setting), temperature), group: name(setting),
					temperature: temperature, trial: func(o options, seed uint64) trial {
						s := base(o, seed)
						change(setting, &s)
						s.Temperature = temperature
						return s
					}})
			}
		}
		return rows
	}
}

// each makes a row of each setting.
func each[S any](settings []S, name func(S) string, of func(S, options, uint64) trial) func(o options) []row {
	return func(options) (rows []row) {
		for _, setting := range settings {
			rows = append(rows, row{name: name(setting), trial: func(o options, seed uint64) trial {
				return of(setting, o, seed)
			}})
		}
		return rows
	}
}

var predictions = []column{{"nll", "NLL", false}, {"accuracy", "accuracy %", true}, {"ece", "ECE", false},
	{"gibbs", "NLL of one", false}, {"inside", "T_K inside %", true}, {"configurational", "T_C / T", false}}

// drawnPrior is of -predictive alone: Wenzel et al. draw networks from it, which needs no sampler.
var drawnPrior = priorOf{Kind: "he", BiasSD: 1e-6}

// priors are those of -prior and -predictive. Wenzel et al. sample He weights with biases N(0, 1); those with biases
// N(0, 0.05²) are the prior of their HMC study.
var priors = []priorOf{{Kind: "normal", Variance: 0.001}, {Kind: "normal", Variance: 0.01},
	{Kind: "normal", Variance: 0.1}, {Kind: "normal", Variance: 1}, {Kind: "normal", Variance: 10},
	{Kind: "he", BiasSD: 1}, {Kind: "he", BiasSD: biasSD}}

// tests in the order of the table.
var tests = []test{
	{name: "agreement", about: "HMC and SGHMC on data that are drawn from the prior",
		question: "Is SGHMC at fault? Data of a network that is drawn from the prior, 100 to train with, full batches; " +
			"KL is symmetrised, between what HMC and SGHMC predict, beside that between halves of HMC's chains. " +
			"R-hat and ESS are those of the mean predictive entropy.",
		rows: agreementRows, loss: "nll_hmc", tuned: "Nothing was tuned by scores: SGHMC has one learning rate in all " +
			"rows, and HMC adapts its step size and its metric in the warm-up.",
		columns: []column{{"kl", "KL", false}, {"kl_hmc", "KL, halves of HMC", false}, {"nll_hmc", "NLL, HMC", false},
			{"nll_sghmc", "NLL, SGHMC", false}, {"entropy_hmc", "entropy, HMC", false},
			{"entropy_sghmc", "entropy, SGHMC", false}, {"rhat_hmc", "R-hat", false}, {"ess_hmc", "ESS, HMC", false},
			{"rhat_sghmc", "R-hat, SGHMC", false}, {"ess_sghmc", "ESS, SGHMC", false},
			{"rhat_weights", "R-hat of weights", false}}},
	{name: "simulation", about: "with and without estimated masses, and with and without cyclical steps",
		question: "Do masses and cycles make the simulation exact? T = 1; 99 % of the kinetic temperatures of exact " +
			"simulation are inside.",
		rows: each([][2]bool{{true, true}, {false, true}, {true, false}, {false, false}}, func(c [2]bool) string {
			return map[bool]string{true: "masses", false: "no masses"}[c[0]] +
				map[bool]string{true: ", cycles", false: ", constant steps"}[c[1]]
		}, func(c [2]bool, o options, seed uint64) trial {
			s := base(o, seed)
			s.Masses, s.Cyclical = c[0], c[1]
			return s
		}), columns: predictions},
	{name: "batch", about: "sizes of the minibatch", question: "Is it the noise of small minibatches?",
		rows: over(unlessQuick([]int{25, 100, mostImages}, []int{15, 30, quickImages}),
			func(n int) string { return fmt.Sprintf("batch %d", n) },
			func(n int, s *sampling) { s.Batch = n }), columns: predictions, loss: "nll"},
	{name: "data", about: "numbers of training images", question: "Is it the number of data?",
		rows: over(unlessQuick([]int{100, 250, mostImages}, []int{15, 30, quickImages}),
			func(n int) string { return fmt.Sprintf("%d images", n) },
			func(n int, s *sampling) { s.Train = n }), columns: predictions, loss: "nll"},
	{name: "capacity", about: "widths and depths of the network", question: "Is it the capacity of the network?",
		rows: over(always([][]int{{8, 8}, {32, 32}, {128, 128}, {32}, {32, 32, 32}}),
			func(h []int) string { return fmt.Sprintf("hidden %v", h) },
			func(h []int, s *sampling) { s.Hidden = h }), columns: predictions, loss: "nll"},
	{name: "prior", about: "variances of the prior, and He priors", question: "Is it the prior?",
		rows: over(always(priors), priorOf.String, func(p priorOf, s *sampling) { s.Prior = p }), columns: predictions,
		loss: "nll"},
	{name: "predictive", about: "which classes networks that are drawn from the prior predict",
		question: "What does the prior say? Classes of a network, on average over the images: the largest share, and the " +
			"entropy in nats, of single networks and of the average over 100; uniform are 0.1 and 2.303.",
		tuned: "Nothing is sampled, and so nothing was tuned.",
		rows: each(append(slices.Clone(priors), drawnPrior), priorOf.String, func(p priorOf, o options, seed uint64) trial {
			return histograms{Hidden: base(o, seed).Hidden, Prior: p, Networks: 100, Seed: seed}
		}), columns: []column{{"largest", "largest, one", false}, {"largest_average", "largest, average", false},
			{"entropy", "entropy, one", false}, {"entropy_average", "entropy, average", false}}},
	{name: "sandwich", about: "SGD, then SGHMC at T = 1, then SGD again",
		question: "Is the sampler lost where no good network is? Single networks after each phase.",
		rows: each([]int{1}, func(int) string { return "SGD, SGHMC, SGD" },
			func(_ int, o options, seed uint64) trial {
				s := base(o, seed)
				return sandwich{sampling: s, Phase: s.Warmup + s.Settle}
			}), columns: []column{{"nll_sgd", "NLL, SGD", false}, {"nll_sghmc", "NLL, SGHMC", false},
			{"nll_again", "NLL, SGD again", false}, {"accuracy_sgd", "accuracy %, SGD", true},
			{"accuracy_sghmc", "accuracy %, SGHMC", true}, {"accuracy_again", "accuracy %, SGD again", true}}},
	{name: "limit", about: "the loss of an ensemble of infinitely many networks",
		question: "Is it that there are too few networks? C(S) of S networks, fitted by C + a/S + b/S².",
		rows: over(always([]string{"limit"}), func(s string) string { return s }, func(_ string, s *sampling) {
			chains := s.Chains
			s.Draws, s.Limit = max(2*s.Draws, (fewestForLimit+chains-1)/chains), true
		}), columns: []column{{"networks", "networks", false}, {"nll", "NLL", false}, {"limit", "NLL of infinitely many",
			false}, {"gibbs", "NLL of one", false}}, loss: "limit"},
	{name: "tune", about: "learning rates of the base settings, the only thing that is tuned; scored on images that " +
		"the other tests do not score",
		question: "Which learning rate? Scored on 400 images that are neither trained with nor scored elsewhere.",
		tuned:    "This tunes the learning rate of the settings that all tests start from, at T = 1, and nothing else.",
		rows: each([]float64{0.003, 0.01, 0.03, 0.1}, func(lr float64) string { return fmt.Sprintf("learning rate %g", lr) },
			func(lr float64, o options, seed uint64) trial {
				s := base(o, seed)
				s.LR, s.Tune = lr, true
				return s
			}), columns: predictions},
}

// agreementRows are depths and temperatures.
func agreementRows(o options) (rows []row) {
	temperatures := []float64{0.03, 0.1, 0.3, 1}
	depths := []int{1, 2, 3}
	if o.quick {
		temperatures, depths = []float64{0.1, 1}, []int{1, 2}
	}
	for _, depth := range depths {
		for _, temperature := range temperatures {
			rows = append(rows, row{name: fmt.Sprintf("depth %d, T = %g", depth, temperature),
				group: fmt.Sprintf("depth %d", depth), temperature: temperature, trial: func(o options, seed uint64) trial {
					return compared(o, depth, temperature, seed)
				}})
		}
	}
	return rows
}

// trials are those of a test with all seeds.
func (t test) trials(o options) (all []trial) {
	for _, r := range t.rows(o) {
		for i := range o.seeds {
			all = append(all, r.trial(o, o.seed+uint64(i)))
		}
	}
	return all
}
