package hmc

import "github.com/kelvin-ppl/kelvin/infer/native"

// compiled is a target as native code. Chains call it each by itself, at the same time.
type compiled struct {
	f     *native.Func
	scale float64
}

// compiledTempered is native code of a target with a Jacobian.
type compiledTempered struct{ compiled }

func (c compiled) Dim() int { return c.f.Dim() }

// Concurrent says that calls may come from several goroutines at once.
func (c compiled) Concurrent() bool { return true }

func (c compiled) ValueAndGrad(x, logp, grad []float64) error {
	d := c.f.Dim()
	for k := range logp {
		lo, hi := k*d, (k+1)*d
		if err := c.eval(&logp[k], x[lo:hi], 0, grad[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// ValueAndGradAt evaluates each row at its temperature: N·LogPosterior + T·LogJacobian.
func (c compiledTempered) ValueAndGradAt(x, t, logp, grad []float64) error {
	d := c.f.Dim()
	for k, temperature := range t {
		lo, hi := k*d, (k+1)*d
		if err := c.eval(&logp[k], x[lo:hi], temperature/c.scale, grad[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

func (c compiled) eval(logp *float64, x []float64, weight float64, grad []float64) (err error) {
	if *logp, err = c.f.Eval(x, weight, grad); err != nil || c.scale == 1 {
		return err
	}
	for i := range grad {
		grad[i] *= c.scale
	}
	*logp *= c.scale
	return nil
}
