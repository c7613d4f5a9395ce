package torch_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// What is kept outlives the scope with its values, what is not is freed.
func TestScopeKeepsOnlyWhatIsKept(t *testing.T) {
	var kept, dropped torch.Tensor
	inScope(t, func(s *torch.Scope) {
		dropped = vec([]float64{1, 2, 3})
		kept = torch.Of(dropped.T().MustMulScalar(ts.FloatScalar(2), false))
		s.Keep(kept)
		s.Keep(torch.Tensor{}) // nothing to keep is not an error
	})
	assert.False(t, torch.Freed(kept))
	assert.Equal(t, []float64{2, 4, 6}, floats(kept))
	assert.True(t, torch.Freed(dropped))
	torch.Free(kept)
	assert.True(t, torch.Freed(kept))
	torch.Free(kept, torch.Tensor{}) // again does nothing
}

// Every op makes exactly one tensor of the scope: three ones, minus the one that is handed on, minus
// the one freed early.
func TestScopeOwned(t *testing.T) {
	inScope(t, func(outer *torch.Scope) {
		require.Equal(t, 0, outer.Owned())
		inScope(t, func(s *torch.Scope) {
			a := vec([]float64{1})
			b := a.T().MustExp(false)
			c := b.MustNeg(false)
			require.Equal(t, 3, s.Owned())
			assert.Equal(t, 0, outer.Owned(), "the inner scope owns what is made in it")
			s.Keep(a)
			assert.Equal(t, 2, s.Owned())
			assert.Equal(t, 1, outer.Owned(), "what is kept goes to the scope around")
			torch.Free(torch.Of(b))
			assert.Equal(t, 1, s.Owned())
			torch.Detach(torch.Of(c))
			assert.Equal(t, 0, s.Owned())
			assert.Equal(t, 1, outer.Owned(), "a detached tensor belongs to no scope")
			torch.Detach(torch.Of(c), torch.Tensor{}) // again, and nil, do nothing
			defer torch.Free(torch.Of(c))
		})
	})
}

// A tensor kept by the inner scope lives as long as the outer one, and one kept by both outlives both.
func TestScopeNesting(t *testing.T) {
	var inner, both, detached torch.Tensor
	inScope(t, func(outer *torch.Scope) {
		inScope(t, func(s *torch.Scope) {
			inner, both, detached = vec([]float64{1}), vec([]float64{2}), vec([]float64{3})
			s.Keep(inner, both)
			outer.Keep(both) // it belongs to outer now
			torch.Detach(detached)
			lost := vec([]float64{4})
			outer.Keep(lost) // it belongs to s: left as it is
			assert.Equal(t, 1, s.Owned())
		})
		assert.Equal(t, []float64{1}, floats(inner))
		assert.Equal(t, 1, outer.Owned())
	})
	assert.True(t, torch.Freed(inner))
	assert.Equal(t, []float64{2}, floats(both))
	assert.Equal(t, []float64{3}, floats(detached))
	torch.Free(both, detached)
}

// A scope that is closed keeps and owns nothing.
func TestScopeAfterClose(t *testing.T) {
	var s *torch.Scope
	inScope(t, func(open *torch.Scope) { s = open; vec([]float64{1}) })
	x := vec([]float64{1})
	defer torch.Free(x)
	s.Keep(x)
	assert.Equal(t, 0, s.Owned())
}

// Scalars are freed with the scope, and then refused, by operations and by their own methods.
func TestScopeFreesScalars(t *testing.T) {
	var two *ts.Scalar
	inScope(t, func(*torch.Scope) { two = ts.FloatScalar(2) })
	for name, f := range map[string]func(x torch.Tensor) error{
		"AddScalar":  func(x torch.Tensor) error { _, err := x.T().AddScalar(two, false); return err },
		"AddScalar_": func(x torch.Tensor) error { return x.T().AddScalar_(two) },
		"Clamp":      func(x torch.Tensor) error { _, err := x.T().Clamp(two, two, false); return err },
		"ToFloat":    func(torch.Tensor) error { _, err := two.ToFloat(); return err },
		"ToInt":      func(torch.Tensor) error { _, err := two.ToInt(); return err },
		"ToString":   func(torch.Tensor) error { _, err := two.ToString(); return err },
		"ConstantPadNdWithVal": func(x torch.Tensor) error {
			_, err := x.T().ConstantPadNdWithVal([]int64{1, 1}, two, false)
			return err
		},
	} {
		inScope(t, func(*torch.Scope) {
			e := asError(t, f(vec([]float64{1})))
			assert.Truef(t, e.Freed, "%s: %v", name, e)
			assert.Equal(t, name, e.Op)
			assert.Contains(t, e.Message, "scalar")
		})
	}
	var none *ts.Scalar
	inScope(t, func(*torch.Scope) {
		_, err := vec([]float64{1}).T().AddScalar(none, false)
		assert.True(t, asError(t, err).Freed)
		v, err := ts.IntScalar(7).ToInt()
		require.NoError(t, err)
		assert.Equal(t, 7, v)
	})
}

type ours struct{ site string }

func (e ours) Error() string   { return "site " + e.site }
func (e ours) RecoverAsError() {}

// Do returns the panics that are meant as errors, whatever their form, and the error of the function.
func TestDoReturnsTypedPanics(t *testing.T) {
	plain := errors.New("plain")
	wrapping := fmt.Errorf("while loading: %w", plain)
	assert.Same(t, plain, torch.Do(func(*torch.Scope) error { return plain }))
	assert.Same(t, plain, torch.Do(func(*torch.Scope) error { return torch.Must(error(nil), plain) }))
	assert.ErrorIs(t, torch.Do(func(*torch.Scope) error { return torch.Must(error(nil), wrapping) }), plain)
	// An error of a type of its own is wrapped with the line.
	at := here(1)
	err := torch.Do(func(*torch.Scope) error { panic(ours{"w"}) })
	assert.ErrorIs(t, err, ours{"w"})
	assert.ErrorContains(t, err, "(at "+at+")")
	assert.ErrorIs(t, torch.Do(func(*torch.Scope) error { return torch.Must(error(nil), error(ours{"w"})) }), ours{"w"})

	first := asError(
		t,
		torch.Do(func(*torch.Scope) error { vec([]float64{1}).T().MustView([]int64{2, 2}, false); return nil }),
	)
	assert.Equal(t, "View", first.Op)
	again := torch.Do(func(*torch.Scope) error { panic(first) })
	assert.Same(t, first, again.(*torch.Error))
	// An error passes through nested scopes once, unchanged.
	nested := torch.Do(func(*torch.Scope) error {
		return torch.Do(func(*torch.Scope) error { panic(first) })
	})
	assert.Same(t, first, nested.(*torch.Error))
}

// A panic of another type goes through, and still closes the scope and gives the thread back as it was.
func TestDoLetsOtherPanicsThrough(t *testing.T) {
	var x torch.Tensor
	for _, value := range []any{"text", 7, errors.New("not marked")} {
		for _, run := range []func(f func()) error{
			func(f func()) error { return torch.Do(func(*torch.Scope) error { f(); return nil }) },
			func(f func()) error { return torch.NoGrad(func() error { f(); return nil }) },
			func(f func()) error {
				_, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { f(); return in, nil }, []torch.Tensor{x},
					nil)
				return err
			},
			func(f func()) error {
				_, _, err := torch.ValueAndGrad(func(y torch.Tensor) torch.Tensor { f(); return y }, x)
				return err
			},
		} {
			inScope(t, func(outer *torch.Scope) {
				x = vec([]float64{3})
				before := outer.Owned()
				var inside torch.Tensor
				assert.PanicsWithValue(t, value, func() {
					_ = run(func() { inside = torch.Of(x.T().MustExp(false)); panic(value) })
				})
				if torch.Freed(inside) { // all but NoGrad, which opens no scope
					assert.Equal(t, before, outer.Owned())
				}
				// The outer scope is current again, gradients are recorded, and no level of vmap is left.
				y := vec([]float64{2})
				assert.Greater(t, outer.Owned(), before)
				assert.Equal(t, []float64{4}, floats(torch.Of(y.T().MustMul(y.T(), false))))
				leaf := torch.Must(torch.Leaf(y))
				assert.True(t, leaf.T().MustMul(leaf.T(), false).MustRequiresGrad())
			})
			assert.True(t, torch.Freed(x))
		}
	}
	var nilMap map[string]int
	assert.Panics(t, func() { _ = torch.Do(func(*torch.Scope) error { nilMap["a"] = 1; return nil }) },
		"a bug of the user's")
}

// A goroutine that ends inside a scope (as t.FailNow does) closes it.
func TestDoClosesOnGoexit(t *testing.T) {
	var x torch.Tensor
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		_ = torch.Do(func(*torch.Scope) error {
			x = vec([]float64{1})
			runtime.Goexit()
			return nil
		})
	}()
	wg.Wait()
	assert.True(t, torch.Freed(x))
}

// Scopes of many goroutines do not meet: each frees its own tensors and no others.
func TestScopesOfManyGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 50 {
				var kept, lost torch.Tensor
				err := torch.Do(func(s *torch.Scope) error {
					lost = torch.Of(ts.MustFull([]int64{8}, ts.FloatScalar(float64(g)), gotch.Double, gotch.CPU))
					kept = torch.Of(lost.T().MustAddScalar(ts.FloatScalar(float64(i)), false))
					s.Keep(kept)
					if n := s.Owned(); n != 1 {
						return fmt.Errorf("goroutine %d: the scope owns %d tensors, expected 1", g, n)
					}
					return nil
				})
				assert.NoError(t, err)
				assert.True(t, torch.Freed(lost))
				assert.Equal(t, float64(g+i), floats(kept)[7])
				torch.Free(kept)
			}
		}()
	}
	wg.Wait()
}
