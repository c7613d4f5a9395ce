// Command lora learns texts one after another with a small language model, after section 5 of Duffield et al. 2025
// ("Scalable Bayesian Learning with posteriors"), in the small: a transformer of characters takes the place of Llama.
//
// It is first trained on Newton's Opticks. Then low-rank adapters beside its last attention layer learn a German, a
// French, a Spanish and a Portuguese novel, one episode each: by sequential maximum a posteriori; with the Laplace
// approximation of the episodes before as the prior of the next; and offline, with all texts so far. A language
// displaces the one before, so there is something to forget. Apart from that SGHMC samples the last attention layer
// given English texts, one chain for long and ten for short, and the uncertainties of both are to tell Latin from
// English. Under the tables the claims of the paper are judged by their margins over the seeds.
//
//	go run ./examples/lora            tables, and out/lora/forgetting.png and outliers.png: 6 to 10 minutes
//	go run ./examples/lora -size 3    three times as many updates
//	go run ./examples/lora -tune      learning rates and λ, by losses on parts of the texts that are not scored
//
// The texts are in the public domain, and small; see texts/README.md. What has been computed is kept in -dir: a run
// that was killed goes on, with the episodes of a seed anew.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "tiny networks and runs, in the folder quick of -dir: a look at the output")
	flag.BoolVar(&o.tune, "tune", false, "compare learning rates and λ on the validation parts, with a seed of its own")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "lora"), "folder for the pictures and for what has been computed")
	flag.Float64Var(&o.size, "size", 1, "number of updates: 1 is two minutes for a seed with one thread")
	flag.IntVar(&o.seeds, "seeds", 3, "number of seeds, of adapters, shuffles and samplers; the base has the first")
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed")
	command.Main("lora", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json, quick, tune bool
	dir               string
	size              float64
	seeds             int
	seed              uint64
}

// settings are everything that the results depend on.
type settings struct {
	Version   int        `json:"version"`
	Width     int        `json:"width"`
	Blocks    int        `json:"blocks"`
	Length    int        `json:"length"` // characters that the model sees
	Text      int        `json:"text"`   // characters of a text at most
	Batch     int        `json:"batch"`
	Base      int        `json:"base_updates"`
	Rank      int        `json:"rank"`
	Alpha     float64    `json:"alpha"`
	Episode   int        `json:"episode_updates"`
	EpisodeLR float64    `json:"episode_learning_rate"`
	Lambda    [2]float64 `json:"lambda"` // weights of what was learned before
	Chains    int        `json:"chains"`
	Sampled   int        `json:"sghmc_updates"` // of each parallel chain
	Draws     int        `json:"serial_draws"`
	LR        float64    `json:"sghmc_learning_rate"`
	Windows   int        `json:"outlier_windows"`
	Seed      uint64     `json:"seed"` // of the base
}

func settingsOf(o options) settings {
	scaled := func(n float64) int { return max(1, int(n*o.size+0.5)) }
	s := settings{Version: 2, Width: 64, Blocks: 2, Length: 48, Text: 1 << 30, Batch: 16, Base: scaled(1200), Rank: 8,
		Alpha: 32, Episode: scaled(200), EpisodeLR: 1e-2, Lambda: [2]float64{1, 10}, Chains: 10, Sampled: scaled(200),
		Draws: 10, LR: 0.1, Windows: 80, Seed: o.seed}
	if o.quick {
		s.Width, s.Blocks, s.Length, s.Text, s.Batch, s.Base, s.Rank, s.Episode = 8, 1, 12, 800, 4, 60, 2, 6
		s.Chains, s.Sampled, s.Draws, s.Windows = 3, 10, 3, 12
	}
	return s
}

// outcome is what one seed gives.
type outcome struct {
	Learned  learned
	Outliers []detection
}

func run(ctx context.Context, w io.Writer, o options) error {
	if !(o.size > 0) || o.seeds < 1 {
		return fmt.Errorf("size is %g and seeds %d, both must be above 0", o.size, o.seeds)
	}
	if o.seed <= tuneSeed && tuneSeed-o.seed < uint64(o.seeds) {
		return fmt.Errorf("seeds %d to %d: %d is the seed on which settings are chosen", o.seed, o.seed+uint64(o.seeds)-1,
			tuneSeed)
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	s, dir := settingsOf(o), o.dir
	if o.quick {
		dir = filepath.Join(dir, "quick")
	}
	identity, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	m, err := newLanguage(s)
	if err != nil {
		return err
	}
	texts, err := readTexts(s)
	if err != nil {
		return err
	}
	if o.tune {
		base, err := m.base(ctx, s, texts, filepath.Join(dir, "base"), string(identity))
		if err != nil {
			return err
		}
		return m.tune(ctx, w, s, base, texts, o.json)
	}
	k := &kept{dir: dir, settings: s}
	var all []outcome
	for i := range o.seeds {
		seed := o.seed + uint64(i)
		var one outcome
		if err := part(k, fmt.Sprintf("episodes-%d", seed), &one.Learned, func() (v learned, err error) {
			base, err := m.base(ctx, s, texts, filepath.Join(dir, "base"), string(identity))
			if err != nil {
				return v, err
			}
			a, err := m.adapt(s, base, texts, seed, func(t text) []int { return t.test })
			if err != nil {
				return v, err
			}
			return a.learn(ctx, ways(s))
		}); err != nil {
			return err
		}
		if err := part(k, fmt.Sprintf("outliers-%d", seed), &one.Outliers, func() (v []detection, err error) {
			base, err := m.base(ctx, s, texts, filepath.Join(dir, "base"), string(identity))
			if err != nil {
				return v, err
			}
			running := filepath.Join(dir, fmt.Sprintf("running-%d", seed))
			if v, err = m.outliers(ctx, s, base, texts, seed, running, string(identity)); err != nil {
				return v, err
			}
			return v, os.RemoveAll(running)
		}); err != nil {
			return err
		}
		all = append(all, one)
	}
	sum, err := summarise(s, all)
	if err != nil {
		return err
	}
	if err := sum.draw(dir, all); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(sum)
	}
	return sum.print(w, dir)
}

// kept is the folder of what has been computed.
type kept struct {
	dir      string
	settings settings
}

// part reads what is there, or computes and stores it.
func part[V any](k *kept, name string, to *V, compute func() (V, error)) error {
	var stored struct {
		Settings settings `json:"settings"`
		Value    V        `json:"value"`
	}
	path := filepath.Join(k.dir, name+".json")
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if *to, err = compute(); err != nil {
			return err
		}
		stored.Settings, stored.Value = k.settings, *to
		return classify.WriteJSON(path, stored)
	case err != nil:
		return err
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("%s: %w: remove it to compute it again", path, err)
	}
	if stored.Settings != k.settings {
		return fmt.Errorf("%s is of other settings: remove the folder, or choose another with -dir", path)
	}
	*to = stored.Value
	return nil
}
