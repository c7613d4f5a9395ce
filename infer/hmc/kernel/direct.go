package kernel

import (
	"math"
	"runtime/debug"
)

// direct is a gradient that evaluates by itself, in the calling goroutine, and still ends when the batcher does. It is
// for one chain alone, which then pays nothing for batching, and for densities that can be called concurrently. It adds
// its evaluations to count.
func (b *batcher) direct(temperature *float64, count *int64) gradient {
	logp, t := make([]float64, 1), make([]float64, 1)
	return func(x, grad []float64) (float64, error) {
		if b.stopped.Load() {
			return math.NaN(), b.Err()
		}
		t[0] = *temperature
		if err := b.one(x, t, logp, grad); err != nil {
			if !recoverable(err) {
				return math.NaN(), err
			}
			logp[0] = math.NaN()
		}
		*count++
		return logp[0], nil
	}
}

// one evaluates one point. A panic becomes an error.
func (b *batcher) one(x, t, logp, grad []float64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{"density", r, string(debug.Stack())}
		}
	}()
	switch d := b.density.(type) {
	case funcDensity:
		logp[0] = d.f(x, grad)
		return nil
	case tempered:
		return d.ValueAndGradAt(x, t, logp, grad)
	default:
		return d.ValueAndGrad(x, logp, grad)
	}
}
