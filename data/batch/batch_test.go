package batch_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// people are n rows of y = 3 + 0.5·age - 2·[region is south] + noise of standard deviation 0.7.
func people(t *testing.T, n int) *data.Table {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 17))
	age, region, y := make([]float64, n), make([]string, n), make([]float64, n)
	for i := range n {
		age[i], region[i] = 20+40*rng.Float64(), []string{"north", "south"}[rng.IntN(2)]
		y[i] = 3 + 0.5*age[i] + 0.7*rng.NormFloat64()
		if region[i] == "south" {
			y[i] -= 2
		}
	}
	table, err := data.NewTable(data.Column{Name: "age", Numbers: age}, data.Column{Name: "region", Labels: region},
		data.Column{Name: "y", Numbers: y})
	require.NoError(t, err)
	return table
}

var spec = data.Spec{
	Terms:   []data.Term{{Column: "age", Scale: 1}, {Column: "region"}},
	Outcome: data.Term{Column: "y", Scale: 1},
}

// Each tensor has the shape, the type and the values of its column, lives when a scope around has closed, and passes
// through minibatches.
func TestOf(t *testing.T) {
	table := people(t, 6)
	s := spec
	s.Columns = []string{"age", "region"}
	d, err := s.Fit(table)
	require.NoError(t, err)
	f, err := d.Frame(table)
	require.NoError(t, err)
	var b infer.Batch
	require.NoError(t, torch.Do(func(*torch.Scope) (err error) {
		b, err = batch.Of(f)
		return err
	}))
	for name, want := range map[string]any{"x": []int{6, 2}, "y": []int{6}, "age": []int{6}, "region": []int{6}} {
		shape, err := torch.Shape(b[name])
		require.NoError(t, err)
		assert.Equal(t, want, shape, name)
		dtype, err := torch.DTypeOfTensor(b[name])
		require.NoError(t, err)
		assert.Equal(t, name == "region", dtype == torch.DTypeOf[int](), name)
	}
	x, err := torch.ToSlice[float64](b["x"])
	require.NoError(t, err)
	assert.Equal(t, f.X[4], x[8:10])
	region, err := torch.ToSlice[int](b["region"])
	require.NoError(t, err)
	assert.Equal(t, f.Indices["region"], region)

	parts, err := infer.Minibatches(b, infer.MinibatchOptions{Size: 4, KeepOrder: true})
	require.NoError(t, err)
	part, err := parts.Next()
	require.NoError(t, err)
	y, err := torch.ToSlice[float64](part["y"])
	require.NoError(t, err)
	assert.Equal(t, f.Y[:4], y)
}

// A frame that no design made is an error where it does not fit together.
func TestOfErrors(t *testing.T) {
	for _, c := range []struct {
		frame *data.Frame
		want  string
	}{
		{nil, "the frame has no rows"},
		{&data.Frame{}, "the frame has no rows"},
		{&data.Frame{Rows: 2, Y: []float64{1}}, `"y" has 1 rows, expected 2`},
		{&data.Frame{Rows: 1, X: [][]float64{{1, 2}}, Names: []string{"a"}}, "row 0 of X has 2 numbers, expected 1"},
		{&data.Frame{Rows: 1, Y: []float64{1}, Numbers: map[string][]float64{"y": {1}}}, `"y" has 1 rows, expected 1, under`},
	} {
		_, err := batch.Of(c.frame)
		require.ErrorContains(t, err, c.want)
		require.True(t, errors.Is(err, infer.ErrConfig))
	}
}

// NUTS on the standardised data has the posterior of the coefficients on the scale of the file after the way back. With
// a known standard deviation and flat priors that is the Gaussian of least squares, mean (XᵀX)⁻¹Xᵀy and covariance
// 0.49 (XᵀX)⁻¹, here from the columns of the file without any scaling.
func TestCoefficientsByNUTS(t *testing.T) {
	const sigma, n = 0.7, 40
	table := people(t, n)
	d, err := spec.Fit(table)
	require.NoError(t, err)
	f, err := d.Frame(table)
	require.NoError(t, err)
	b, err := batch.Of(f)
	require.NoError(t, err)
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		intercept := c.Sample("intercept", dist.ImproperUniform(support.Real, nil, nil))
		w := c.Sample("w", dist.ImproperUniform(support.Real, []int{2}, nil))
		c.Plate("people", 0, func(c *ppl.Ctx) {
			mean := c.Data("x").MatMul(w).Add(intercept)
			c.Observe("y", dist.Normal(mean, sigma/d.Outcome().SD), c.Data("y"))
		})
	}, b)
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1})
	require.NoError(t, err)
	back, err := d.Draws(posterior, "intercept", "w")
	require.NoError(t, err)
	require.Equal(t, []string{"intercept", "age", "region[south]"}, back.Names())

	age, err := table.Column("age")
	require.NoError(t, err)
	region, err := table.Column("region")
	require.NoError(t, err)
	y, err := table.Column("y")
	require.NoError(t, err)
	x := mat.NewDense(n, 3, nil)
	for i := range n {
		south := 0.0
		if region.Labels[i] == "south" {
			south = 1
		}
		x.SetRow(i, []float64{1, age.Numbers[i], south})
	}
	var product, covariance mat.Dense
	var mean mat.VecDense
	product.Mul(x.T(), x)
	require.NoError(t, covariance.Inverse(&product))
	require.NoError(t, mean.SolveVec(x, mat.NewVecDense(n, y.Numbers)))

	for j, name := range back.Names() {
		sd := sigma * math.Sqrt(covariance.At(j, j))
		z, squares := make([][]float64, back.Chains()), make([][]float64, back.Chains())
		sum, sum2 := 0.0, 0.0
		for c := range z {
			for _, v := range back.Element(c, j) {
				u := (v - mean.AtVec(j)) / sd
				z[c], squares[c] = append(z[c], u), append(squares[c], u*u)
				sum, sum2 = sum+u, sum2+u*u
			}
		}
		total := float64(back.Total()) // z is standard normal: the variances of z and z² are 1 and 2
		assert.InDelta(t, 0, sum/total, 4/math.Sqrt(diag.ESSMean(z)), name)
		assert.InDelta(t, 1, sum2/total, 4*math.Sqrt(2/diag.ESSMean(squares)), name)
	}
}
