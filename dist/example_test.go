package dist_test

import (
	"fmt"
	"log"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// One distribution, several values: the result has the shape of the values.
func ExampleNormal() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.Normal(0, 2)
		fmt.Printf("%.4f\n", scalarRead(d.LogProb(torch.Of(scalarVec(-1, 0, 40))).T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [-1.7371 -1.6121 -201.6121]
}

// Expand makes more distributions of one kind, Independent one distribution of vectors of them.
func ExampleIndependent() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.Normal(scalarVec(1, 2, 3), 1).Expand(4, 3)
		fmt.Println("batch", d.BatchShape(), "event", d.EventShape())
		v := dist.Independent(d, 1)
		fmt.Println("batch", v.BatchShape(), "event", v.EventShape())
		x := v.Sample(torch.NewSource(1, 0), 5).T()
		fmt.Println("draws", countShape(x), "log densities", countShape(v.LogProb(torch.Of(x)).T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// batch [4 3] event []
	// batch [4] event [3]
	// draws [5 4 3] log densities [5 4]
}

// The components are the last dimension of the batch.
func ExampleMixtureSameFamily() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.MixtureSameFamily(dist.Categorical(scalarVec(0.3, 0.7)), dist.Normal(scalarVec(-2, 1), 0.5))
		fmt.Printf("density %.4f\n", scalarRead(d.LogProb(torch.Of(scalarVec(-2, 0, 1))).T().MustExp(false)))
		fmt.Printf("mean %.2f variance %.2f\n", scalarRead(d.Mean().T()), scalarRead(d.Variance().T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// density [0.2394 0.0757 0.5585]
	// mean [0.10] variance [2.14]
}

// Components of several families.
func ExampleMixture() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.Mixture([]float64{3, 1}, dist.Normal(0, 1), dist.HalfNormal(5))
		fmt.Println("values:", d.Support())
		fmt.Printf("density %.4f\n", scalarRead(d.LogProb(torch.Of(scalarVec(-1, 1))).T().MustExp(false)))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// values: a real number
	// density [0.1815 0.2206]
}

// What is left of a waiting time after the first hour is as long as it was.
func ExampleTruncated() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.Truncated(dist.Exponential(0.5), 1, math.Inf(1))
		fmt.Println("values:", d.Support())
		fmt.Printf("%.4f\n", scalarRead(d.LogProb(torch.Of(scalarVec(0.5, 1, 3))).T().MustExp(false)))
		fmt.Printf("mean %.4f\n", scalarRead(d.Mean().T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// values: a number of at least 1
	// [0.0000 0.5000 0.1839]
	// mean [3.0000]
}

// The logarithm of a lognormal number is normal.
func ExampleTransformed() {
	err := torch.Do(func(*torch.Scope) error {
		d := dist.Transformed(dist.Normal(0, 1), bijector.Exp())
		fmt.Println(d.Name(), "over", d.Support())
		fmt.Printf("%.4f\n", scalarRead(d.LogProb(torch.Of(scalarVec(0.5, 1, 2))).T()))
		fmt.Printf("%.4f\n", scalarRead(dist.LogNormal(0, 1).LogProb(torch.Of(scalarVec(0.5, 1, 2))).T()))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// Transformed(Normal, Exp) over a number greater than 0
	// [-0.4660 -0.9189 -1.8523]
	// [-0.4660 -0.9189 -1.8523]
}
