package draws

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Two elements in two chains of unequal length. x is 0 1 2 3, y is 2x + (0 0 1 1): var x = 5/3, cov = 2 var x + cov(x,
// step) with step deviations -1/2 -1/2 1/2 1/2, so cov(x, step) = (3/4 + 1/4 + 1/4 + 3/4) / 3 = 2/3.
func TestCovariance(t *testing.T) {
	d := must(New([]Site{{Name: "x", Shape: nil, Offset: 0, Size: 1}, {Name: "y", Shape: nil, Offset: 1,
		Size: 1}}, nil, 2))(t)
	for i, row := range [][]float64{{0, 0}, {1, 2}, {2, 5}, {3, 7}} {
		if err := d.AppendChain(min(i, 1), row, nil); err != nil {
			t.Fatal(err)
		}
	}
	cov := must(d.Covariance())(t)
	varX, step, varStep := 5./3, 2./3, 1./3
	near(t, "xx", cov.At(0, 0), varX, 1e-15)
	near(t, "xy", cov.At(0, 1), 2*varX+step, 1e-15)
	near(t, "yy", cov.At(1, 1), 4*varX+4*step+varStep, 1e-15)
}

// gonum's covariance is an independent implementation. 700 draws are three blocks of the product.
func TestCovarianceAgainstGonum(t *testing.T) {
	const n, dim = 700, 11
	rng := rand.New(rand.NewPCG(7, 8))
	d := must(New([]Site{{Name: "w", Shape: []int{dim}, Offset: 0, Size: dim}}, []string{"lp"}, 2))(t)
	dense := mat.NewDense(n, dim, nil)
	for i := range n {
		x := make([]float64, dim)
		common := rng.NormFloat64()
		for e := range x {
			x[e] = common*float64(e) + rng.NormFloat64()
		}
		dense.SetRow(i, x)
		for e := range x {
			x[e] += 1 << 20 // a covariance does not see an offset
		}
		if err := d.AppendChain(i%2, x, []float64{0}); err != nil {
			t.Fatal(err)
		}
	}
	var want mat.SymDense
	stat.CovarianceMatrix(&want, dense, nil)
	got := must(d.Covariance())(t)
	sd := must(d.SD("w"))(t)
	for i := range dim {
		near(t, "variance", got.At(i, i), sd[i]*sd[i], 1e-12)
		for j := range dim {
			near(t, "covariance", got.At(i, j), want.At(i, j), 1e-8) // adding 2^20 rounds x at 1e-10
		}
	}
}

// A bad element spoils its row and column and nothing else, even beside a constant element.
func TestCovarianceNotFinite(t *testing.T) {
	for _, bad := range []float64{nan, inf, -inf} {
		d := must(New([]Site{{Name: "v", Shape: []int{3}, Offset: 0, Size: 3}}, nil, 1))(t)
		for _, row := range [][]float64{{1, bad, 5}, {3, 1, 5}} {
			if err := d.Append(row, nil); err != nil {
				t.Fatal(err)
			}
		}
		cov := must(d.Covariance())(t)
		equalFloats(t, "covariance", cov.RawSymmetric().Data[:3], []float64{2, nan, 0})
		for j := range 3 {
			if !math.IsNaN(cov.At(1, j)) {
				t.Errorf("element (1, %d) is %v, want NaN", j, cov.At(1, j))
			}
		}
		equalFloats(t, "constant", []float64{cov.At(2, 2)}, []float64{0})
	}
}

func TestCovarianceEdges(t *testing.T) {
	if v := must(column(t, 7).Covariance())(t).At(0, 0); !math.IsNaN(v) {
		t.Errorf("covariance of one draw is %v, want NaN", v)
	}
	_, err := column(t).Covariance()
	checkError(t, err, ErrNoDraws, `draws: covariance: there are no draws`)
	_, err = must(New(nil, nil, 1))(t).Covariance()
	checkError(t, err, ErrLayout, `draws: covariance: a draw has no elements`)
}
