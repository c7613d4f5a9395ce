package infer_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// nextLine is the line after the one that called it, as errors show it.
func nextLine() string {
	_, file, line, _ := runtime.Caller(1)
	parts := strings.Split(file, "/")
	return fmt.Sprintf("%s:%d", strings.Join(parts[len(parts)-2:], "/"), line+1)
}

// mistake evaluates a model at one point and at three chains, by itself and through a method, and hands every error to
// check. The layout is b[] w[3]; the batch has x [2] and one that was not set.
func mistake(t *testing.T, f infer.LogPosterior, check func(t *testing.T, err error)) {
	t.Helper()
	l := layoutOf(t, infer.Shapes{"b": {}, "w": {3}})
	b := infer.Batch{"x": vec([]float64{1, 2}), "none": torch.Tensor{}}
	g, err := infer.NewGradient(infer.Sum(f, 1))
	require.NoError(t, err)
	for _, k := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d chains", k), func(t *testing.T) {
			p := pointOf(t, l, make([]float64, 4*k)...)
			before := unscoped()
			_, err := g.ValueAndGrad(p, b, 0)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "log posterior: ")
			check(t, err)
			assert.Equal(t, before, torch.UnscopedBytes(), "an error leaves nothing behind, not even until the next collection")

			// A method puts its name before the error, and the state is as good as before.
			for name, m := range map[string]infer.Method{
				"sgmcmc.SGLD":  sgmcmc.SGLD{LR: infer.Constant(0.1)},
				"sgmcmc.SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.1)},
				"optim.SGD":    optim.SGD{LR: infer.Constant(0.1)},
				"optim.Adam":   optim.Adam{LR: infer.Constant(0.1)},
			} {
				transform := build(t, m, f)
				s, err := infer.Init(transform, p, 1)
				require.NoError(t, err)
				was := saved(s)
				_, _, err = transform.Update(s, b)
				require.Error(t, err)
				assert.Contains(t, err.Error(), name+": log posterior: ")
				check(t, err)
				assert.Equal(t, was, saved(s))
			}

			// The next gradient is right: no map, scope or grad mode is left open.
			e := evaluate(t, func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				return sum(p.Flat), nil
			}, p, nil)
			assert.Equal(t, shapeOf(p.Flat), shapeOf(e.Grad))
			for _, v := range floats(e.Grad) {
				assert.Equal(t, 1.0, v)
			}
		})
	}
}

// A wrong shape: the op, the shapes that the model sees (without the chain axis), and the line of the model.
func TestModelWithAWrongShape(t *testing.T) {
	var at string
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		at = nextLine()
		return p.Get("w").Dot(b.Get("x")), nil
	}, func(t *testing.T, err error) {
		var e *torch.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "Dot", e.Op)
		assert.Equal(t, []string{"[3] Double", "[2] Double"}, e.Operands)
		assert.Equal(t, at, e.At)
		assert.Contains(t, err.Error(), "libtorch: Dot([3] Double, [2] Double): ")
		assert.Contains(t, err.Error(), "(at "+at+")")
	})
}

func TestModelWithoutItsBatchTensor(t *testing.T) {
	for _, name := range []string{"y", "none"} {
		t.Run(name, func(t *testing.T) {
			mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				return sum(p.Flat).Mul(b.Get(name)), nil
			}, func(t *testing.T, err error) {
				var e *infer.ModelError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, &infer.ModelError{Name: name, What: "batch tensor", Have: []string{"x"}}, e)
				assert.ErrorContains(t, err, `log posterior: the model asked for batch tensor "`+name+
					`", which does not exist; there are: ["x"]`)
			})
		})
	}
}

// A tensor that the batch has not, or that was never made, is an error, not the number 0.
func TestModelWithoutATensor(t *testing.T) {
	for name, use := range map[string]func(x, y torch.Tensor) torch.Tensor{
		"argument": func(x, y torch.Tensor) torch.Tensor { return x.Mul(y) },
		"receiver": func(x, y torch.Tensor) torch.Tensor { return y.Sub(x) },
		"function": func(x, y torch.Tensor) torch.Tensor { return x.Add(y.Exp()) },
		"gotch":    func(x, y torch.Tensor) torch.Tensor { return torch.Of(x.T().MustMul(y.T(), false)) },
		"sum":      func(x, y torch.Tensor) torch.Tensor { return x.Add(y) },
	} {
		t.Run(name, func(t *testing.T) {
			mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				return use(sum(p.Get("w")), b["typo"]), nil
			}, func(t *testing.T, err error) {
				assert.ErrorContains(t, err, ": it was never made, or a batch has no tensor of that name (at "+
					"infer/model_errors_test.go:")
			})
		})
	}
}

func TestModelWithoutItsSite(t *testing.T) {
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return sum(p.Get("beta")), nil
	}, func(t *testing.T, err error) {
		assert.ErrorContains(t, err,
			`log posterior: the model asked for site "beta", which does not exist; there are: ["b" "w"]`)
	})
}

// A density for each datum instead of their sum.
func TestModelOfAVector(t *testing.T) {
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("w"), nil
	}, func(t *testing.T, err error) {
		assert.ErrorIs(t, err, torch.ErrNotScalar)
		assert.ErrorContains(t, err,
			"log posterior: the function to differentiate returned shape [3], expected []: not a scalar")
	})
}

// A density without the parameters has no gradient: from data alone, from a copy in Go, with gradients switched off, or
// as whole numbers.
func TestModelWithoutParameters(t *testing.T) {
	for name, f := range map[string]infer.LogPosterior{
		"data alone": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return sum(b.Get("x")), nil
		},
		"no grad": func(p infer.Params, b infer.Batch) (y torch.Tensor, aux infer.Aux) {
			_ = torch.NoGrad(func() error { y = sum(p.Flat); return nil })
			return y, nil
		},
		"detached": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return sum(torch.Of(p.Flat.T().MustDetach(false))), nil
		},
		"integers": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return torch.Of(sum(p.Flat).T().MustTotype(gotch.Int64, false)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			mistake(t, f, func(t *testing.T, err error) {
				assert.ErrorIs(t, err, torch.ErrNoGradient)
				assert.ErrorContains(t, err, "log posterior: the function to differentiate does not depend on the inputs")
			})
		})
	}
}

func TestModelThatReturnsNil(t *testing.T) {
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) { return torch.Of(nil), nil },
		func(t *testing.T, err error) {
			assert.ErrorContains(t, err, "is no operand: a number, a torch.Tensor or a *ts.Tensor is required")
		})
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return sum(p.Flat), infer.Aux{"eta": p.Flat, "mu": torch.Tensor{}}
	}, func(t *testing.T, err error) {
		assert.ErrorContains(t, err, `log posterior: it returned nil as aux "mu"`)
	})
}

// A tensor that the model kept from elsewhere, and whose scope is closed.
func TestModelWithAFreedTensor(t *testing.T) {
	var x torch.Tensor
	require.NoError(t, torch.Do(func(*torch.Scope) error { x = vec([]float64{1, 2, 3}); return nil }))
	mistake(t, func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return x.Dot(p.Get("w")), nil
	}, func(t *testing.T, err error) {
		assert.ErrorContains(t, err,
			"libtorch: Dot(freed, [3] Double): a tensor was used after it was freed: its scope is closed or it was dropped")
		assert.ErrorContains(t, err, "(at infer/model_errors_test.go:")
	})
}

// The values of all chains are behind one tensor, so none can be read; with a single point they can. Each way of
// reading says so, and what to do instead.
func TestModelThatReadsValues(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {}})
	for name, read := range map[string]func(x torch.Tensor) float64{
		"torch.Item":    func(x torch.Tensor) float64 { return x.Item() },
		"torch.ToSlice": func(x torch.Tensor) float64 { return torch.Must(torch.ToSlice[float64](x))[0] },
		"Float64Values": func(x torch.Tensor) float64 { return x.T().Float64Values()[0] },
		"Vals":          func(x torch.Tensor) float64 { return x.T().Vals().([]float64)[0] },
		"Int64Values":   func(x torch.Tensor) float64 { return float64(x.T().Int64Values()[0]) },
		"Int64Value":    func(x torch.Tensor) float64 { return float64(torch.Must(x.T().Int64Value([]int64{}))) },
		"IsNonzero": func(x torch.Tensor) float64 {
			return map[bool]float64{true: 1}[torch.Must(x.T().IsNonzero(false))]
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				w := p.Get("w").T()
				if name != "Int64Values" && read(torch.Of(w)) > 0 || name == "Int64Values" &&
					read(torch.Of(w.MustTotype(gotch.Int64, false))) > 0 {
					return scaled(torch.Of(w), 2), nil
				}
				return torch.Of(w), nil
			}
			assert.Equal(t, []float64{2}, floats(evaluate(t, f, pointOf(t, l, 1), nil).Grad))
			g, err := infer.NewGradient(infer.Sum(f, 1))
			require.NoError(t, err)
			_, err = g.ValueAndGrad(pointOf(t, l, 1, -1), nil, 0)
			require.Error(t, err)
			// Kelvin's words, or libtorch's for the operations that it refuses by itself.
			assert.Regexp(t, `the values of a tensor cannot be read inside a vmapped function: `+
				`it stands for all the chains|vmap: It looks like you're`, err.Error())
			assert.ErrorContains(t, err, "(at infer/model_errors_test.go:")
		})
	}
}

// A panic that is not about tensors, a bug in the model's own Go code, is nobody's to catch. It goes through, and what
// comes after it works.
func TestForeignPanic(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2}})
	var empty []float64
	broken := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return scaled(sum(p.Flat), empty[len(shapeOf(p.Flat))]), nil
	}
	g, err := infer.NewGradient(infer.Sum(broken, 1))
	require.NoError(t, err)
	for _, p := range []infer.Params{pointOf(t, l, 1, 2), pointOf(t, l, 1, 2, 3, 4)} {
		before := unscoped()
		assert.PanicsWithError(t, "runtime error: index out of range [1] with length 0",
			func() { _, _ = g.ValueAndGrad(p, nil, 0) })
		assert.Equal(t, before, torch.UnscopedBytes())
		e := evaluate(t, func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return sum(p.Flat), nil
		}, p, nil)
		assert.Equal(t, shapeOf(p.Flat), shapeOf(e.Grad))

		transform := build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, broken)
		_, err := infertest.Run(t.Context(), transform, p, infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 3})
		var panicked *infer.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.ErrorContains(t, err, "panic in the model: runtime error: index out of range [1] with length 0")
		assert.Contains(t, panicked.Stack, "model_errors_test.go")
	}
}

func TestNilModel(t *testing.T) {
	_, err := infer.NewGradient(infer.Target{})
	assert.EqualError(t, err, "the log posterior is nil: invalid configuration")
	_, err = sgmcmc.SGLD{LR: infer.Constant(1)}.Build(infer.Target{})
	assert.EqualError(t, err, "sgmcmc.SGLD: the log posterior is nil: invalid configuration")
	assert.ErrorIs(t, err, infer.ErrConfig)
}

// A point that does not fit its layout never reaches the model.
func TestGradientOfABadPoint(t *testing.T) {
	called := func(infer.Params, infer.Batch) (torch.Tensor, infer.Aux) { panic("called") }
	g, err := infer.NewGradient(infer.Sum(called, 1))
	require.NoError(t, err)
	l := layoutOf(t, infer.Shapes{"w": {2}})
	_, err = g.ValueAndGrad(infer.Params{Layout: l, Flat: vec([]float64{1, 2, 3})}, nil, 0)
	assert.EqualError(t, err,
		"params of shape [3] for the layout w[2]: expected [2], or [K, 2] for K chains: layout does not fit")
	_, err = g.ValueAndGrad(infer.Params{Flat: vec([]float64{1, 2, 3})}, nil, 0)
	assert.ErrorIs(t, err, infer.ErrLayout)
}
