package data_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// read reads text that has no mistake.
func read(t testing.TB, c data.CSV, text string) *data.Table {
	t.Helper()
	table, err := c.Read(strings.NewReader(text))
	require.NoError(t, err)
	return table
}

// table makes a table that has no mistake.
func table(t testing.TB, columns ...data.Column) *data.Table {
	t.Helper()
	made, err := data.NewTable(columns...)
	require.NoError(t, err)
	return made
}

func frame(t testing.TB, d *data.Design, of *data.Table) *data.Frame {
	t.Helper()
	f, err := d.Frame(of)
	require.NoError(t, err)
	return f
}

// wrong is the *data.Error of an error.
func wrong(t testing.TB, err error) *data.Error {
	t.Helper()
	var e *data.Error
	require.True(t, errors.As(err, &e), "%v", err)
	return e
}

// leastSquares are the intercept and the coefficients of the linear regression of y on x, by QR.
func leastSquares(t testing.TB, f *data.Frame) (intercept float64, w []float64) {
	t.Helper()
	x := mat.NewDense(f.Rows, len(f.Names)+1, nil)
	for i, row := range f.X {
		x.SetRow(i, append([]float64{1}, row...))
	}
	var b mat.VecDense
	require.NoError(t, b.SolveVec(x, mat.NewVecDense(f.Rows, f.Y)))
	return b.AtVec(0), b.RawVector().Data[1:]
}
