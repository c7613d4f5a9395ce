//go:build slow

package main

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Both sides have the same log posterior, the same gradient and the same parameters after steps, in double precision to
// what roundings add up to, at sizes that differ from one another.
func TestNetworksAreThoseOfTheCppProgram(t *testing.T) {
	const tolerance = 1e-10
	program, err := build(context.Background(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []architecture{
		{"CNN-LSTM", "cnnlstm", nn.CNNLSTM{Vocab: 50, Length: 30, Embedding: 6, Filters: 5, Hidden: 7, Classes: 3}, 4, 100},
		{"ResNet-20", "resnet", layers.ResNet20{Size: 12, Filters: 3, Classes: 4, Norm: layers.BatchNorm{Batch: true}},
			5, 300},
	} {
		cpp, err := start(context.Background(), program, "cpu")
		if err != nil {
			t.Fatal(err)
		}
		both, err := a.on(cpp, torch.CPU, gotch.Double)
		if err != nil {
			t.Fatal(a.name, err)
		}
		if d, err := both.check(cpp, tolerance); err != nil {
			t.Errorf("%s: %v (difference %g)", a.name, err, d)
		}
		c, err := both.ascent()
		if err != nil {
			t.Fatal(err)
		}
		begin := torch.Must(both.start.Values())
		// The second step is the first with momentum.
		for step := range 3 {
			if err := c.update(); err != nil {
				t.Fatal(err)
			}
			theirs, err := cpp.eval(a.key+".step", a.key+".theta")
			if err != nil {
				t.Fatal(err)
			}
			ours := torch.Must(c.state.Position().Values())
			for i := range ours {
				ours[i] -= begin[i]
				theirs[i] -= begin[i]
			}
			// A difference of two parameters of size one has lost what makes 1e-16 of them.
			if d, err := apart(ours, theirs, 1e-8); err != nil {
				t.Errorf("%s, step %d: %v (difference %g)", a.name, step+1, err, d)
			}
		}
		if err := cpp.stop(); err != nil {
			t.Error(err)
		}
	}
}
