// Command mnist_bayes repeats the experiments of Baldock and Marzari (2019), "Bayesian Neural Networks at Finite
// Temperature": perceptrons M1, M3 and M3* that read handwritten digits of 16 x 16 pixels, with uniform priors. Replica
// exchange samples their posteriors exp(−E/T) at many temperatures at once, E the loss of 50 to 5000 images; the curves
// of the test loss say at which temperature a network predicts best, beside networks at minima of E and ensembles of
// them. Thermodynamic integration compares M1 and M3 by their evidence.
//
// The paper refuses trajectories that end outside of the prior's box, which a network of 14,000 weights does at nearly
// every step that is not short: the weights stay where they began. Here they bounce from the walls, and so the box is
// filled; one curve is of the paper's sampler.
//
//	go run ./examples/papers/mnist_bayes -data DIR    DIR holds the four IDX files of MNIST, plain or compressed
//	go run ./examples/papers/mnist_bayes              digits of 8 x 8 pixels, which the repository carries
//	go run ./examples/papers/mnist_bayes -quick       a minute, to see it work
//	go run ./examples/papers/mnist_bayes -preset baldock-d5000 -replicas 16    the settings of the paper, fewer replicas
//
// It prints tables and the claims of the paper with what was found, and draws pictures in out/mnist_bayes. It is sized
// for less than half an hour on two idle cores. What was interrupted, or killed, goes on where it stopped when it is
// started again.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "folder of the IDX files of MNIST; none for the digits of the repository")
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "a small run of a minute")
	flag.StringVar(&o.preset, "preset", "", "settings of the paper: "+preset.Names(presets))
	flag.IntVar(&o.replicas, "replicas", 0, "replicas of -preset between its temperatures; 0 is the paper's number")
	flag.BoolVar(&o.bounce, "bounce", false, "with -preset: trajectories bounce from the walls, and the box is filled")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "mnist_bayes"), "folder for pictures and what is stored")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "parts computed at once; the results do not depend on it")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the starts, the random streams and the choice of images")
	command.Main("mnist_bayes", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	data, dir, preset   string
	json, quick, bounce bool
	workers, replicas   int
	seed                uint64
}

// results are all that is printed.
type results struct {
	Source    string       `json:"source"`
	Settings  settings     `json:"settings"`
	Constants []constant   `json:"constants"`
	Descended []*descended `json:"descended"`
	Curves    []*swept     `json:"curves"`
	Evidence  []*weighed   `json:"evidence"`
	Claims    []claim      `json:"claims"`
}

// constant is what is known of a network without a run.
type constant struct {
	Network    string  `json:"network"`
	Parameters int     `json:"parameters"`
	LogWidths  float64 `json:"log_widths"` // Σ log σ
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.preset == "" && (o.bounce || o.replicas != 0) || o.preset != "" && o.quick || o.replicas < 3 && o.replicas != 0 {
		return errors.New("-replicas, of 3 or more, and -bounce need -preset, which -quick excludes")
	}
	s := defaultSettings(o.seed)
	switch {
	case o.quick:
		s = quickSettings(o.seed)
	case o.preset != "":
		b, err := preset.Pick(o.preset, presets)
		if err != nil {
			return err
		}
		s = b.settings(o)
	}
	r, err := compute(ctx, s, o)
	if err != nil {
		return err
	}
	if o.json {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	if err := r.draw(o.dir); err != nil {
		return err
	}
	return r.print(w, o.dir)
}

// compute fills the results, part by part, of which each is stored when it is there.
func compute(ctx context.Context, s settings, o options) (*results, error) {
	// The matrices are small, parts run side by side, and what a part computes does not depend on the others.
	if err := torch.SetThreads(1); err != nil {
		return nil, err
	}
	train, test, words, err := source(o.data)
	if err != nil {
		return nil, err
	}
	problems := map[int]*problem{}
	sizes := []int{s.EvidenceData}
	for _, c := range s.Curves {
		sizes = append(sizes, c.Data)
	}
	for _, n := range sizes {
		if problems[n] == nil {
			if problems[n], err = newProblem(train, test, words, n, s.Scored, s.Seed); err != nil {
				return nil, err
			}
		}
	}
	r := &results{Source: words, Settings: s}
	for _, h := range hidden {
		n := problems[s.EvidenceData].networks[h.name]
		r.Constants = append(r.Constants, constant{n.name, n.net.NumParams(), n.logWidths()})
	}
	group, ctx := newPool(ctx, o.workers)
	dir, err := partsOf(o.dir, s, words, train, test)
	if err != nil {
		return nil, err
	}
	r.Evidence = make([]*weighed, 2*s.Evidences)
	for i := range r.Evidence {
		network, seed := []string{"M1", "M3"}[i%2], i/2
		name := fmt.Sprintf("evidence-%s-%d", network, seed)
		part(group, filepath.Join(dir, name), &r.Evidence[i], func(dir string) (*weighed, error) {
			return s.weigh(ctx, problems[s.EvidenceData], network, seed, dir, infer.Silent)
		})
	}
	r.Curves, r.Descended = make([]*swept, len(s.Curves)), make([]*descended, len(s.Curves))
	minima := map[string]**descended{} // of curves of one network and one training set
	for i, c := range s.Curves {
		p, name := problems[c.Data], fmt.Sprintf("%s-%d", fileName(c.Network), c.Data)
		if minima[name] == nil {
			minima[name] = &r.Descended[i]
			part(group, filepath.Join(dir, "descend-"+name), &r.Descended[i], func(dir string) (*descended, error) {
				return s.descend(ctx, p, c.Network, dir, infer.Silent)
			})
		}
		if c.Refused {
			name += "-refused"
		}
		part(group, filepath.Join(dir, "curve-"+name), &r.Curves[i], func(dir string) (*swept, error) {
			return s.sweep(ctx, p, c, dir, infer.Silent)
		})
	}
	if err := group.wait(); err != nil {
		return nil, err
	}
	for i, c := range s.Curves {
		r.Descended[i] = *minima[fmt.Sprintf("%s-%d", fileName(c.Network), c.Data)]
	}
	r.Claims = r.claims()
	return r, nil
}

// partsOf is the folder of the parts, named after what they are computed with: another seed, another size or other
// images have another folder.
func partsOf(dir string, s settings, words string, train, test mnist.Data) (string, error) {
	identity, err := json.Marshal(s)
	for _, d := range []mnist.Data{train, test} {
		words += " " + grid.Fingerprint(d.Pixels, d.Labels)
	}
	return filepath.Join(dir, fmt.Sprintf("parts-%x", sha256.Sum256(append(identity, words...)))[:len("parts-")+12]), err
}

// fileName is a network's name without the star.
func fileName(network string) string {
	if network == "M3*" {
		return "M3s"
	}
	return network
}

// part computes a result, or reads it where it has been stored.
func part[R any](group *pool, dir string, result **R, compute func(dir string) (*R, error)) {
	group.run(func() error {
		file := dir + ".json"
		data, err := os.ReadFile(file)
		if err == nil {
			*result = new(R)
			if err := json.Unmarshal(data, *result); err != nil {
				return fmt.Errorf("%s is no part of a run: %w: remove it", file, err)
			}
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if *result, err = compute(dir); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(dir), err)
		}
		if data, err = json.Marshal(*result); err != nil {
			return err
		}
		err = atomicfile.Replace(file, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		return os.RemoveAll(dir)
	})
}
