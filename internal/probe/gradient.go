package main

import (
	"errors"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/setup"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// timeGradients returns the microseconds of one value and gradient of a logistic regression of 1000 data on 25
// covariates, eager and compiled.
func timeGradients() (eager float64, tiers []setup.Tier, err error) {
	const n, d = 1000, 25
	streams := torch.NewStreams(1, 1)
	err = torch.Do(func(*torch.Scope) error {
		x := torch.Must(torch.Must(streams.Normal([]int{n, d}, gotch.Double, torch.CPU)).T().Squeeze(false))
		y := torch.Must(torch.Must(streams.Normal([]int{n}, gotch.Double, torch.CPU)).T().Squeeze(false)).MustSign(false)
		layout, err := infer.NewLayout(infer.Shapes{"w": {d}})
		if err != nil {
			return err
		}
		start, err := infer.Zeros(layout)
		if err != nil {
			return err
		}
		logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			w := p.Get("w").T()
			return torch.Of(b["x"].T().MustMv(w, false).MustMul(b["y"].T(), false).MustLogSigmoid(false).
				MustSum(gotch.Double, false).MustSub(w.MustDot(w, false), false)), nil
		}
		batch := infer.Batch{"x": torch.Of(x), "y": torch.Of(y)}
		target := infer.Sum(logPosterior, n)
		gradient, err := infer.NewGradient(target)
		if err != nil {
			return err
		}
		eager, err = least(func() error {
			return torch.Do(func(*torch.Scope) error {
				_, err := gradient.ValueAndGrad(start, batch, 0)
				return err
			})
		})
		if err != nil {
			return err
		}
		point, grad := make([]float64, d), make([]float64, d)
		for _, t := range []native.Tier{native.C, native.VM, native.Replay} {
			f, r, err := infer.Compile(target, start, batch, native.Options{Tier: t})
			if err != nil && !errors.Is(err, native.ErrNative) {
				return err
			}
			one := setup.Tier{Name: string(t), By: r.Compiler}
			if f == nil {
				one.Reason = r.Reason
			} else {
				if one.GradientUS, err = least(func() error { _, err := f.Eval(point, 0, grad); return err }); err != nil {
					return err
				}
			}
			tiers = append(tiers, one)
		}
		return nil
	})
	return eager, tiers, err
}

// least is the time of a call in microseconds: the best of several rounds, since other work only adds to it.
func least(call func() error) (best float64, err error) {
	const rounds, calls = 9, 50
	for r := range rounds {
		began := time.Now()
		for range calls {
			if err := call(); err != nil {
				return 0, err
			}
		}
		if us := float64(time.Since(began).Nanoseconds()) / 1e3 / calls; r == 0 || us < best {
			best = us
		}
	}
	return best, nil
}
