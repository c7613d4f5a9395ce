package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"reflect"
	"time"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
)

// errFailing is what hostile readers and writers return, and errThrown what hostile functions panic with.
var (
	errFailing = errors.New("failing")
	errThrown  = errors.New("thrown by a function of the caller's")
)

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errFailing }
func (failing) Write([]byte) (int, error) { return 0, errFailing }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func model(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, 1)) }

func exported() *serve.Model {
	var file bytes.Buffer
	if err := must(ppl.Compile(model, nil)).Export(&file); err != nil {
		panic(err)
	}
	return must(serve.Load(&file))
}

func layout() *infer.Layout { return must(infer.NewLayout(infer.Shapes{"x": {}})) }

func density(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return p.Get("x").Square().Mul(-0.5), nil
}

func target() infer.Target { return infer.Sum(density, 1) }

func options() infer.Options {
	return infer.Options{Chains: 2, Warmup: 5, Draws: 5, Observer: infer.Silent}
}

func transform() infer.Transform { return must(sgmcmc.SGLD{LR: infer.Constant(0.1)}.Build(target())) }

func filled() *draws.Draws {
	sites := []draws.Site{{Name: "x", Size: 1}}
	d := must(draws.New(sites, []string{"lp"}, 2))
	for c := range 2 {
		for i := range 10 {
			_ = d.AppendChain(c, []float64{math.Sin(float64(i + 3*c))}, []float64{-1})
		}
	}
	return d
}

var ageSpec = data.Spec{Terms: []data.Term{{Column: "age", Scale: 1}, {Column: "x"}}}

func people() *data.Table {
	return must(data.NewTable(data.Column{Name: "age", Numbers: []float64{1, 2, 4}},
		data.Column{Name: "x", Labels: []string{"a", "b", "a"}}))
}

// good makes a value that is right for most functions, by type.
var good = map[reflect.Type]func() any{
	of[context.Context](): func() any {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		time.AfterFunc(time.Second, cancel)
		return ctx
	},
	of[error]():                       func() any { return errFailing },
	of[io.Reader]():                   func() any { return bytes.NewReader([]byte("lp__,x\n-1,2\n")) },
	of[io.Writer]():                   func() any { return &bytes.Buffer{} },
	of[*data.Table]():                 func() any { return people() },
	of[*data.Design]():                func() any { return must(ageSpec.Fit(people())) },
	of[data.Spec]():                   func() any { return ageSpec },
	of[infer.Program]():               func() any { return must(ppl.Compile(model, nil)) },
	of[*serve.Model]():                func() any { return exported() },
	of[*ppl.Program]():                func() any { return must(ppl.Compile(model, nil)) },
	of[ppl.Model]():                   func() any { return ppl.Model(model) },
	of[infer.Method]():                func() any { return sgmcmc.SGLD{LR: infer.Constant(0.1)} },
	of[infer.Transform]():             func() any { return transform() },
	of[infer.State]():                 func() any { return must(transform().Init(must(infer.Zeros(layout())))) },
	of[infer.Target]():                func() any { return target() },
	of[infer.LogPosterior]():          func() any { return infer.LogPosterior(density) },
	of[infer.Gradient]():              func() any { return must(infer.NewGradient(target())) },
	of[*infer.Layout]():               func() any { return layout() },
	of[infer.Params]():                func() any { return must(infer.Zeros(layout())) },
	of[infer.Batch]():                 func() any { return infer.Batch{} },
	of[infer.Batches]():               func() any { return infer.Full(nil) },
	of[infer.Options]():               func() any { return options() },
	of[native.Options]():              func() any { return native.Options{Tier: native.VM} },
	of[kernel.Density]():              func() any { return kernel.Func(1, quadratic) },
	of[*ts.Tensor]():                  func() any { return torch.New([]float64{1, 2}, 2) },
	of[torch.Tensor]():                func() any { return torch.Of(0.5) },
	of[*torch.Streams]():              func() any { s := torch.NewStreams(1, 2); return &s },
	of[torch.Streams]():               func() any { return torch.NewStreams(1, 2) },
	of[*torch.Source]():               func() any { return torch.NewSource(1, 2) },
	of[gotch.Device]():                func() any { return torch.CPU },
	of[gotch.DType]():                 func() any { return gotch.Double },
	of[dist.Distribution]():           func() any { return dist.Normal(0, 1) },
	of[support.Support]():             func() any { return support.Real },
	of[bijector.Bijector]():           func() any { return bijector.Exp() },
	of[*draws.Draws]():                func() any { return filled() },
	of[*store.Inference]():            func() any { return &store.Inference{Posterior: filled()} },
	of[*score.Reliability]():          func() any { return &score.Reliability{} },
	of[thermo.Simulation]():           func() any { return thermo.Simulation{} },
	of[*nn.Network]():                 func() any { return must(nn.Sequential{nn.Linear{Out: 1}}.Build(2)) },
	of[kernel.Options]():              func() any { return kernel.Options{Chains: 2, Warmup: 5, Draws: 5} },
	of[any]():                         func() any { return 0.5 },
	of[infer.Schedule]():              func() any { return infer.Constant(0.1) },
	of[hmc.NUTS]():                    func() any { return hmc.NUTS{} },
	of[func() (infer.Batch, error)](): func() any { return func() (infer.Batch, error) { return nil, nil } },
}

func quadratic(x, grad []float64) float64 {
	grad[0] = -x[0]
	return -x[0] * x[0] / 2
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }
