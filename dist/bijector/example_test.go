package bijector_test

import (
	"fmt"
	"log"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A sampler moves in all of R^n: For says how to get from there to a support. Zero is the middle of the simplex.
func ExampleFor() {
	err := torch.Do(func(*torch.Scope) error {
		b, err := bijector.For(support.Simplex)
		if err != nil {
			return err
		}
		x := torch.New([]float64{0, 0, 0})
		y := b.Forward(x).T()
		fmt.Printf("%s: %v becomes %.2f\n", b.Name(), floats(x.T()), floats(y))
		fmt.Printf("log |det| = %.4f\n", b.LogAbsDetJacobian(x, torch.Of(y)).Item())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// StickBreaking: [0 0 0] becomes [0.25 0.25 0.25 0.25]
	// log |det| = -5.5452
}

// Bijectors are put together in the order in which they are applied.
func ExampleChain() {
	err := torch.Do(func(*torch.Scope) error {
		b := bijector.Chain(bijector.Affine(1, 2), bijector.Exp())
		x := torch.New([]float64{-0.5, 0, 0.5})
		y := b.Forward(x).T()
		fmt.Println(b.Name())
		fmt.Printf("%.4f\n", floats(y))
		fmt.Printf("%.4f\n", floats(b.LogAbsDetJacobian(x, torch.Of(y)).T()))
		fmt.Printf("%.4f\n", floats(b.Inverse(torch.Of(y)).T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// Chain(Affine, Exp)
	// [1.0000 2.7183 7.3891]
	// [0.6931 1.6931 2.6931]
	// [-0.5000 0.0000 0.5000]
}

// Three numbers become the Cholesky factor of a 3 x 3 correlation matrix.
func ExampleCorrCholesky() {
	err := torch.Do(func(*torch.Scope) error {
		l := bijector.CorrCholesky().Forward(torch.New([]float64{0.5, -1, 0.2})).T()
		r := floats(l.MustMatmul(l.MustTranspose(-2, -1, false), false))
		for i := 0; i < 3; i++ {
			fmt.Printf("%7.4f\n", r[3*i:3*i+3])
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [ 1.0000  0.4621 -0.7616]
	// [ 0.4621  1.0000 -0.2385]
	// [-0.7616 -0.2385  1.0000]
}

// The vector of a unit vector's raw numbers has one degree of freedom more than the direction; the
// density term closes it.
func ExampleLogDensityChange() {
	err := torch.Do(func(*torch.Scope) error {
		b := bijector.UnitVector()
		x := torch.New([]float64{3, 4})
		y := b.Forward(x).T()
		fmt.Printf(
			"%.1f %.4f\n",
			floats(y),
			bijector.LogDensityChange(b, x, torch.Of(y)).Item(),
		)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [0.6 0.8] -12.5000
}

// Inverse takes what is constrained to the whole line.
func ExampleInverse() {
	err := torch.Do(func(*torch.Scope) error {
		logit := bijector.Inverse(bijector.Sigmoid())
		fmt.Printf("%.4f\n", floats(logit.Forward(torch.New([]float64{0.1, 0.5, 0.9})).T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [-2.1972 0.0000 2.1972]
}
