package infer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestBatchSize(t *testing.T) {
	n, err := infer.Batch{"x": vec(make([]float64, 12), 4, 3), "y": vec(make([]float64, 4))}.Size()
	require.NoError(t, err)
	assert.EqualValues(t, 4, n)

	freed := vec([]float64{1})
	torch.Free(freed)
	for name, c := range map[string]struct {
		batch infer.Batch
		want  string
	}{
		"nil":        {nil, "the batch is empty"},
		"no tensors": {infer.Batch{}, "the batch is empty"},
		"no data":    {infer.Batch{"x": vec(nil, 0, 3)}, "the batch is empty"},
		"a scalar": {infer.Batch{"x": torch.Scalar(1)},
			`batch tensor "x" has shape []: its first dimension must count the data`},
		"unequal sizes": {infer.Batch{"a": vec(make([]float64, 4)), "b": vec(make([]float64, 8), 2, 4)},
			`batch tensor "b" has 2 data, others 4`},
		"one empty": {infer.Batch{"a": vec(nil, 0, 1), "b": vec(make([]float64, 4))},
			`batch tensor "b" has 4 data, others 0`},
		"not set": {infer.Batch{"x": torch.Tensor{}},
			`batch tensor "x" has shape []: its first dimension must count the data`},
		"freed": {infer.Batch{"x": freed},
			`batch tensor "x": libtorch: Describe(freed): a tensor was used after it was freed`},
	} {
		_, err := c.batch.Size()
		assert.ErrorContains(t, err, c.want, name)
	}
}

// Get gives the tensor itself. What is not there panics with a typed error that names what is; a nil
// tensor is not there.
func TestBatchGet(t *testing.T) {
	b := infer.Batch{"x": vec([]float64{1}), "y": vec([]float64{2}), "none": torch.Tensor{}}
	assert.Same(t, b["y"].T(), b.Get("y").T())
	for _, name := range []string{"z", "none"} {
		err := torch.Do(func(*torch.Scope) error { b.Get(name).T(); return nil })
		var e *infer.ModelError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, &infer.ModelError{Name: name, What: "batch tensor", Have: []string{"x", "y"}}, e)
		assert.ErrorContains(t, err, `the model asked for batch tensor "`+name+
			`", which does not exist; there are: ["x" "y"] (at infer/batch_test.go:`)
	}
}
