package kernel

import (
	"errors"
	"fmt"
	"math"
)

// Density is a log density on R^d, up to a constant, with its gradient, evaluated at K points at once. K is len(logp)
// and varies from call to call; x and grad are K rows of Dim numbers. x must not be changed; logp and grad must be
// filled.
//
// Calls come one at a time, from one goroutine, unless a run asks for [Options.Parallel] or the density says of itself
// that it may be called from several at once, by a second method that returns true:
//
//	Concurrent() bool
//
// Then each chain calls it from its own goroutine, with K = 1. A goroutine is not locked to a thread: a density that
// needs that locks for the call, as package torch does.
//
// A density that itself depends on the temperature T of a chain, for example N·logp + T·log|Jacobian| where the
// Jacobian is not tempered, has a second method, which is called instead, with the temperature of each row:
//
//	ValueAndGradAt(x, temperatures, logp, grad []float64) error
//
// The law of a chain at T is exp(logp/T) for its logp at T.
//
// A value or gradient that is not finite is a divergence of its row. An error ends the run, unless it says of itself,
// by a method Recoverable() bool that returns true, that only the point was bad (a matrix that could not be
// factorised): then the rows are tried one by one, and those that fail again are divergences. A panic is an error too.
type Density interface {
	// Dim is d; ValueAndGrad fills logp, [K], and grad, [K, d], at x, [K, d].
	Dim() int
	ValueAndGrad(x, logp, grad []float64) error
}

// tempered is a density that depends on the temperature.
type tempered interface {
	ValueAndGradAt(x, temperatures, logp, grad []float64) error
}

func isTempered(d Density) bool {
	_, ok := d.(tempered)
	return ok
}

// isConcurrent reports whether a density says that it may be called from several goroutines at once.
func isConcurrent(d Density) bool {
	c, ok := d.(interface{ Concurrent() bool })
	return ok && c.Concurrent()
}

// gradient evaluates one point: it fills grad with ∇logp(x) and returns logp(x). The kernels are written against it, so
// that a chain does not know whether others run beside it. Its error ends the transition, unless it is recoverable.
type gradient func(x, grad []float64) (logp float64, err error)

// Func makes a Density of a function of one point, which fills grad and returns the log density. Batches gain nothing
// for it: with several chains set [Options.Parallel] if the function is safe for concurrent use. Each chain then calls
// the function itself.
func Func(dim int, f func(x, grad []float64) float64) Density { return funcDensity{dim, f} }

type funcDensity struct {
	dim int
	f   func(x, grad []float64) float64
}

func (d funcDensity) Dim() int { return d.dim }

func (d funcDensity) ValueAndGrad(x, logp, grad []float64) error {
	if n := len(logp) * d.dim; d.dim < 0 || len(x) < n || len(grad) < n || d.f == nil {
		return fmt.Errorf("%d points of dimension %d from %d numbers, with room for %d: %w", len(logp), d.dim, len(x),
			len(grad), errConfig)
	}
	for k := range logp {
		lo, hi := k*d.dim, (k+1)*d.dim
		logp[k] = d.f(x[lo:hi:hi], grad[lo:hi:hi])
	}
	return nil
}

// recoverable reports whether an error says that only the point was bad.
func recoverable(err error) bool {
	var r interface{ Recoverable() bool }
	return errors.As(err, &r) && r.Recoverable()
}

// evaluate calls the density and makes a panic an error.
func evaluate(d Density, x, t, logp, grad []float64) (err error) {
	defer caught("density", &err)
	if at, ok := d.(tempered); ok {
		return at.ValueAndGradAt(x, t, logp, grad)
	}
	return d.ValueAndGrad(x, logp, grad)
}

// evaluateRows calls the density. After a recoverable error it goes row by row, so that one chain's bad point does not
// become a divergence of the others; rows that still fail get NaN.
func evaluateRows(d Density, x, t, logp, grad []float64) error {
	err := evaluate(d, x, t, logp, grad)
	if err == nil || !recoverable(err) {
		return err
	}
	dim := d.Dim()
	for k := range logp {
		lo, hi := k*dim, (k+1)*dim
		if len(logp) > 1 {
			err = evaluate(d, x[lo:hi], t[k:k+1], logp[k:k+1], grad[lo:hi])
		}
		if err != nil && !recoverable(err) {
			return err
		}
		if err != nil {
			logp[k] = math.NaN()
		}
	}
	return nil
}

// point evaluates a gradient function; a recoverable error, and anything that is not finite, gives a logp of NaN.
func point(g gradient, x, grad []float64) (float64, error) {
	logp, err := g(x, grad)
	if err != nil {
		if recoverable(err) {
			return math.NaN(), nil
		}
		return math.NaN(), err
	}
	if !finite(logp) || !allFinite(grad) {
		return math.NaN(), nil
	}
	return logp, nil
}
