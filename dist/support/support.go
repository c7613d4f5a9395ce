// Package support names the sets on which distributions live.
package support

import (
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Kind is the kind of a support.
type Kind int

// The kinds of supports. Those with vector or matrix events say so.
const (
	KindReal             Kind = iota
	KindInterval              // Low < x < High, or with ends included where Closed
	KindSimplex               // vectors of positive numbers with sum 1
	KindOrdered               // increasing vectors
	KindPositiveOrdered       // increasing vectors of positive numbers
	KindUnitVector            // vectors of length 1
	KindLowerCholesky         // lower-triangular matrices with positive diagonal
	KindCorrCholesky          // the same, with rows of length 1
	KindPositiveDefinite      // symmetric positive-definite matrices
	KindBoolean               // 0 or 1
	KindInteger               // whole numbers from Low to High
	KindCounts                // vectors of whole numbers from 0 with sum High
	KindPoint                 // a single value; Low where Closed, else any
	KindZeroSum               // vectors of numbers with sum 0
)

// Support is a set of values. It is a plain value; the constructors of this package make it.
type Support struct {
	Kind Kind // the form of the set
	// Low and High are the ends of intervals and integers: numbers, infinite where there is no end, or tensors of the
	// batch shape.
	Low, High torch.Tensor
	Closed    bool // of intervals: the finite ends belong to it; of a point: it is Low
	// Atoms says that single numbers of an interval have a probability, as the ends of what is censored: such a variable
	// is observed, and never latent.
	Atoms bool
	// Missing says that NaN, a number that was not observed, is allowed too.
	Missing bool
	// Groups are, of vectors with sum 0, the group of each element: the sum of each group is 0, and elements of group −1
	// are free. Nil is one group of all. It must not be changed.
	Groups *[]int
	// Extra is the number of dimensions, beyond those of one event of the kind, that are part of the event.
	Extra int
}

// EventDims is the number of dimensions of one value.
func (s Support) EventDims() int {
	switch s.Kind {
	case KindSimplex, KindOrdered, KindPositiveOrdered, KindUnitVector, KindCounts, KindZeroSum:
		return 1 + s.Extra
	case KindLowerCholesky, KindCorrCholesky, KindPositiveDefinite:
		return 2 + s.Extra
	}
	return s.Extra
}

// Discrete says whether the values are counted, not measured.
func (s Support) Discrete() bool {
	return s.Kind == KindBoolean || s.Kind == KindInteger || s.Kind == KindCounts
}

// Independent makes n more dimensions part of the event.
func (s Support) Independent(n int) Support {
	s.Extra += n
	return s
}

// Bounds are the ends where they are numbers, and ok is false where one of them is a tensor.
func (s Support) Bounds() (low, high float64, ok bool) {
	low, isLow := s.Low.Number()
	high, isHigh := s.High.Number()
	return low, high, isLow && isHigh
}

// Check returns an error that names the first element, or the first vector or matrix, of a torch.Tensor or *ts.Tensor
// outside the support.
func (s Support) Check(x any) error {
	return torch.Do(func(*torch.Scope) error { return s.check(torch.Of(x).T()) })
}

func (s Support) check(value *ts.Tensor) error {
	shape, err := torch.Shape(torch.Of(value))
	if err != nil {
		return err
	}
	values, err := torch.ToSlice[float64](torch.Of(value))
	if err != nil {
		return err
	}
	dtype, err := torch.DTypeOfTensor(torch.Of(value))
	if err != nil {
		return err
	}
	return s.checkValues(values, shape, dtype)
}

// String is the support in words.
func (s Support) String() string {
	switch s.Kind {
	case KindReal:
		return "a real number"
	case KindInterval:
		return s.interval()
	case KindInteger:
		return s.integers()
	case KindCounts:
		return s.counts()
	case KindPoint:
		return s.point()
	}
	return names[s.Kind]
}

var names = map[Kind]string{
	KindSimplex: "a vector of positive numbers with sum 1", KindOrdered: "an increasing vector",
	KindPositiveOrdered: "an increasing vector of positive numbers", KindUnitVector: "a vector of length 1",
	KindLowerCholesky:    "a lower-triangular matrix with positive diagonal",
	KindCorrCholesky:     "the Cholesky factor of a correlation matrix",
	KindPositiveDefinite: "a symmetric positive-definite matrix", KindBoolean: "0 or 1",
	KindZeroSum: "a vector of numbers with sum 0",
}
