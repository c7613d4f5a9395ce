package portable

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exports are files of all versions.
func exports() ([]string, error) {
	one, err := filepath.Glob("../../../serve/testdata/*.kelvin")
	return append(one, "../../../serve/testdata/app/model.kelvin"), err
}

// A file that is read is written to the same bytes, its plans take other data of their shapes alone, and a file with
// one other byte is refused.
func TestFiles(t *testing.T) {
	files, err := exports()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		f, err := Read(bytes.NewReader(want))
		require.NoError(t, err, name)
		var got bytes.Buffer
		require.NoError(t, f.Write(&got))
		assert.True(t, bytes.Equal(want, got.Bytes()), name)
		_, err = f.Named.Sites()
		require.NoError(t, err)

		value := func(p *Plan) float64 {
			m, err := p.Machine()
			require.NoError(t, err)
			return m.Eval(f.Centre, 1, make([]float64, m.Dim()), nil)
		}
		for i, s := range f.Density.Inputs() {
			data := map[string][]float64{s.Name: f.Density.inputs[i]}
			again, err := f.Density.With(data)
			require.NoError(t, err)
			assert.Equal(t, value(f.Density), value(again), name)
			data[s.Name] = make([]float64, s.Size+1)
			_, err = f.Density.With(data)
			assert.ErrorContains(t, err, s.Name)
			if f.Density.plan.Inputs[i].Elem == ir.I64 {
				data[s.Name] = slices.Repeat([]float64{0.5}, s.Size)
				_, err = f.Density.With(data)
				assert.ErrorContains(t, err, "cannot hold")
			}
		}
		for _, at := range []int{0, len(magic), head, len(want) / 2, len(want) - 1} {
			bad := bytes.Clone(want)
			bad[at] ^= 1
			_, err := Read(bytes.NewReader(bad))
			assert.ErrorIs(t, err, ErrFile, "%s: byte %d", name, at)
		}
	}
}

// What is no file and no plan is an error: nothing to read or write, no numbers of an input, a function in C.
func TestRefuses(t *testing.T) {
	_, err := Read(nil)
	require.ErrorIs(t, err, ErrFile)
	require.Error(t, (&File{}).Write(nil))
	_, err = NewPlan(nil, nil)
	require.Error(t, err)
	p := &ir.Plan{Dim: 1, Inputs: []ir.Slot{{Name: "y", Shape: []int{2}}}}
	_, err = NewPlan(p, [][]float64{{1}})
	require.ErrorContains(t, err, `"y" has 1 numbers, expected 2`)
	p = &ir.Plan{Dim: 1, Steps: []ir.Step{{Kind: ir.Call}}}
	_, err = NewPlan(p, nil)
	require.ErrorIs(t, err, ir.ErrCall)
}
