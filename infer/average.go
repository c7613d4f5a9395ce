package infer

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Average is the time average of each chain over the updates after burn-in. With step sizes ε_t that change, points do
// not count alike: a chain stays at θ_t for the time ε_t of the update that leaves it, so that
//
//	E[θ] ≈ Σ ε_t θ_t / Σ ε_t
//
// (Teh, Thiery and Vollmer 2016, equation 3). It is kept in float64 whatever the type of the chain.
type Average struct {
	Mean     Params  // of θ, of shape [d] or [K, d]
	Variance Params  // Σ ε_t (θ_t − mean)² / Σ ε_t, of the same shape
	Weight   float64 // Σ ε_t
}

// averager keeps weighted running moments (West 1979): with W the weight so far and w that of the next value,
// mean' = mean + (w/W')(θ − mean) and square' = square + w(θ − mean)(θ − mean').
type averager struct {
	weight       float64
	mean, square torch.Tensor
}

const averageMean, averageSquare = "average.mean", "average.square"

func (a *averager) add(theta torch.Tensor, weight float64) error {
	if !(weight > 0) {
		return nil
	}
	return torch.Do(func(*torch.Scope) error {
		device, err := torch.DeviceOf(theta)
		if err != nil {
			return err
		}
		// Increments below the rounding of float32 would be lost.
		if theta, err = torch.To(theta, device, torch.DTypeOf[float64]()); err != nil {
			return err
		}
		if a.mean == (torch.Tensor{}) {
			if a.mean, err = torch.Combine(torch.Term{Coeff: 0, Tensor: theta}); err != nil {
				return err
			}
			if a.square, err = torch.Combine(torch.Term{Coeff: 0, Tensor: theta}); err != nil {
				return err
			}
			torch.Detach(a.mean, a.square)
		}
		total := a.weight + weight
		off, err := torch.Combine(torch.Term{Coeff: 1, Tensor: theta}, torch.Term{Coeff: -1, Tensor: a.mean})
		if err != nil {
			return err
		}
		mean, err := torch.Combine(torch.Term{Coeff: 1, Tensor: a.mean}, torch.Term{Coeff: weight / total, Tensor: off})
		if err != nil {
			return err
		}
		// (θ − mean)(θ − mean') = (W/W')(θ − mean)²
		product, err := off.T().Square(false)
		if err != nil {
			return err
		}
		square, err := torch.Combine(torch.Term{Coeff: 1, Tensor: a.square},
			torch.Term{Coeff: weight * a.weight / total, Tensor: torch.Of(product)})
		if err != nil {
			return err
		}
		torch.Detach(mean, square)
		torch.Free(a.mean, a.square)
		a.mean, a.square, a.weight = mean, square, total
		return nil
	})
}

// result is the average; nil when nothing was added.
func (a *averager) result(l *Layout) (*Average, error) {
	if a.mean == (torch.Tensor{}) {
		return nil, nil
	}
	variance, err := torch.Combine(torch.Term{Coeff: 1 / a.weight, Tensor: a.square})
	if err != nil {
		return nil, err
	}
	torch.Detach(variance)
	return &Average{
		Mean:     Params{Layout: l, Flat: a.mean},
		Variance: Params{Layout: l, Flat: variance},
		Weight:   a.weight,
	}, nil
}

func (a *averager) save() Tensors {
	if a.mean == (torch.Tensor{}) {
		return nil
	}
	return Tensors{averageMean: a.mean, averageSquare: a.square}
}

// restore takes its own out of the tensors of a checkpoint.
func (a *averager) restore(weight float64, tensors Tensors) {
	a.weight, a.mean, a.square = weight, tensors[averageMean], tensors[averageSquare]
	delete(tensors, averageMean)
	delete(tensors, averageSquare)
}

// Bootstrap draws n ensembles of the given size from K chains, for the spread of what an ensemble of that
// size shows. An ensemble has no chain twice; different ensembles may share chains. The choice depends on the
// seed alone (PCG, Fisher-Yates).
func Bootstrap(chains, size, n int, seed uint64) ([][]int, error) {
	switch {
	case size < 1 || size > chains:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "size", Value: size,
			Allowed: fmt.Sprintf("it must be from 1 to the %d chains", chains)}
	case n < 1:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "n", Value: n, Allowed: "it must be at least 1"}
	case chains > maxChains:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "chains", Value: chains,
			Allowed: fmt.Sprintf("it must be at most %d", maxChains)}
	case n > 1<<31/chains:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "n", Value: n,
			Allowed: fmt.Sprintf("with %d chains it must be at most %d", chains, 1<<31/chains)}
	}
	out := make([][]int, n)
	for i := range out {
		out[i] = rand.New(rand.NewPCG(seed, uint64(i))).Perm(chains)[:size:size]
	}
	return out, nil
}
