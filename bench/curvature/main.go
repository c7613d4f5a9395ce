// Command curvature compares the diagonals of the empirical Fisher matrix and of the Gauss-Newton matrix with a loop
// over single data, in time, and with the gradient of the batch, in memory. The loop takes one gradient of each datum
// for the Fisher matrix, and one of each of its outputs for the Gauss-Newton matrix.
//
//	go run ./bench/curvature [-quick]
//
// Sides take turns in one process; of each the fastest turn counts. Memory is the most that a call has in RAM beyond
// what there was before, where the system tells; start with MALLOC_MMAP_THRESHOLD_=131072 for exact figures, since the
// C library keeps what is freed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

func main() {
	quick := flag.Bool("quick", false, "small networks and one turn: tries the program, measures nothing")
	flag.Parse()
	if err := run(*quick); err != nil {
		fmt.Fprintln(os.Stderr, "curvature:", err)
		os.Exit(1)
	}
}

func run(quick bool) error {
	text := nn.CNNLSTM{}
	data, turns := 32, 5
	if quick {
		text = nn.CNNLSTM{Vocab: 50, Length: 20, Embedding: 4, Filters: 4, Hidden: 4}
		data, turns = 3, 1
	}
	network, err := text.Build()
	if err != nil {
		return err
	}
	words, err := tokens(data, network.In()[0], quick)
	if err != nil {
		return err
	}
	images, err := nn.MLP{Sizes: []int{64, 50, 50, 10}, Activation: nn.Tanh{}}.Build()
	if err != nil {
		return err
	}
	streams := torch.NewStreams(1, 1)
	pixels, err := streams.Normal([]int{8 * data, 64}, gotch.Float, torch.CPU)
	if err != nil {
		return err
	}
	pixels = pixels.Reshape(8*data, 64)
	fmt.Printf("%-34s %12s %10s %10s %8s %12s\n", "", "parameters", "loop, ms", "ours, ms", "ratio", "memory, MB")
	for _, c := range []struct {
		name    string
		network *nn.Network
		x       torch.Tensor
		classes int
		tables  map[string]string
	}{
		{fmt.Sprintf("CNN-LSTM, %d texts", data), network, words, 2, nil},
		{"the same, embedding as a table", network, words, 2, map[string]string{embedding(network): "x"}},
		{fmt.Sprintf("MLP 64-50-50-10, %d images", 8*data), images, pixels, 10, nil},
	} {
		if err := compare(c.name, c.network, c.x, c.classes, curvature.Options{Tables: c.tables}, turns); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// embedding is the name of the site of the embedding.
func embedding(n *nn.Network) string {
	for _, s := range n.Sites() {
		if s.Table {
			return s.Name
		}
	}
	return ""
}

// tokens are texts of words drawn from the vocabulary.
func tokens(n, length int, quick bool) (torch.Tensor, error) {
	vocabulary := uint64(20_000)
	if quick {
		vocabulary = 50
	}
	words := make([]int, n*length)
	for i := range words {
		words[i] = int(uint64(i) * 2654435761 % (1 << 32) % vocabulary)
	}
	return torch.FromSlice(words, n, length)
}

// compare measures one network, in float32.
func compare(name string, network *nn.Network, x torch.Tensor, classes int, o curvature.Options, turns int) error {
	streams := torch.NewStreams(2, 1)
	p, err := nn.Init(network, nn.XavierNormal(1), &streams)
	if err != nil {
		return err
	}
	if p, err = p.To(torch.CPU, gotch.Float); err != nil {
		return err
	}
	n := x.T().MustSize()[0]
	labels := make([]int, n)
	for i := range labels {
		labels[i] = i % classes
	}
	y, err := torch.FromSlice(labels)
	if err != nil {
		return err
	}
	batch := infer.Batch{"x": x, "y": y}
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { return network.Forward(p, b.Get("x")) }
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { return dist.CategoricalLogits(z).LogProb(b.Get("y")) }
	likelihood := curvature.Likelihood(forward, outer)
	gradient, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return likelihood(p, b).Sum(), nil
	}, 1))
	if err != nil {
		return err
	}
	whole := func() error {
		return torch.Do(func(*torch.Scope) error {
			_, err := gradient.ValueAndGrad(p, batch, 0)
			return err
		})
	}
	each := func(f func(one infer.Batch) error) func() error {
		return func() error {
			for i := range n {
				err := torch.Do(func(*torch.Scope) error {
					return f(infer.Batch{"x": torch.Of(x.T().MustNarrow(0, i, 1, false)),
						"y": torch.Of(y.T().MustNarrow(0, i, 1, false))})
				})
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	gradients := each(func(one infer.Batch) error {
		_, err := gradient.ValueAndGrad(p, one, 0)
		return err
	})
	outputs := each(func(one infer.Batch) error {
		leaf, err := torch.Leaf(p.Flat)
		if err != nil {
			return err
		}
		z := forward(infer.Params{Layout: p.Layout, Flat: leaf}, one).T()
		for c := range classes {
			_, err := torch.Grad([]torch.Tensor{torch.Of(z.MustSelect(1, int64(c), false).MustSum(z.DType(), false))},
				[]torch.Tensor{leaf},
				&torch.GradOptions{KeepGraph: true})
			if err != nil {
				return err
			}
		}
		return nil
	})
	diagonal := func(f func() (torch.Tensor, error)) func() error {
		return func() error {
			return torch.Do(func(*torch.Scope) error {
				_, err := f()
				return err
			})
		}
	}
	own := peak(whole)
	fmt.Printf("%-34s %12d %10s %10s %8s %12s\n", name+", gradient", p.Layout.Dim(), "", "", "", own)
	for _, side := range []struct {
		name    string
		loop, f func() error
	}{
		{"Fisher diagonal", gradients, diagonal(func() (torch.Tensor,
			error) {
			return curvature.FisherDiag(likelihood, p, batch, o)
		})},
		{"GGN diagonal", outputs, diagonal(func() (torch.Tensor,
			error) {
			return curvature.GGNDiag(forward, outer, p, batch, o)
		})},
	} {
		memory := peak(side.f)
		fastest, err := bench.Round(turns, [2]bench.Side{bench.Calls(side.loop), bench.Calls(side.f)}, [2]int{1, 1})
		if err != nil {
			return err
		}
		fmt.Printf("%-34s %12s %10.1f %10.1f %8.2f %12s\n", "  "+side.name, "", fastest[0]*1e-6, fastest[1]*1e-6,
			fastest[0]/fastest[1], memory)
	}
	return nil
}

// peak is the most memory that f has in RAM beyond what there was before, in MB; "" where the system does not tell.
func peak(f func() error) string {
	if err := f(); err != nil { // what it keeps for later calls
		return ""
	}
	clear, err := atomicfile.Open("/proc/self/clear_refs", os.O_WRONLY, 0)
	if err != nil {
		return ""
	}
	_, err = clear.WriteString("5")
	if err = errors.Join(err, clear.Close()); err != nil {
		return ""
	}
	before := status("VmRSS")
	if err := f(); err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f", (status("VmHWM")-before)/1000)
}

// status is a field of /proc/self/status, in kB.
func status(field string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(field + `:\s+(\d+)`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	kb, _ := strconv.ParseFloat(string(found[1]), 64)
	return kb
}
