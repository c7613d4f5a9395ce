package draws_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/require"
)

// Labels take the place of indices in names; what does not fit is refused, and draws that share a layout keep theirs.
func TestLabel(t *testing.T) {
	d, err := draws.New([]draws.Site{{Name: "b", Shape: []int{2}, Size: 2},
		{Name: "r", Shape: []int{2, 2}, Offset: 2, Size: 4}, {Name: "s", Offset: 6, Size: 1}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, d.Append(make([]float64, 7), nil))
	before, err := d.Slice(0, 1)
	require.NoError(t, err)
	require.NoError(t, d.Label("b", []string{"age", "x:z"}))
	require.NoError(t, d.Label("r", []string{"A", "B"}, nil))
	require.Equal(t, []string{"b[age]", "b[x:z]", "r[A,0]", "r[A,1]", "r[B,0]", "r[B,1]", "s"}, d.Names())
	require.Equal(t, []string{"b[0]", "b[1]"}, before.Names()[:2])
	part, err := d.Select("b")
	require.NoError(t, err)
	require.Equal(t, []string{"b[age]", "b[x:z]"}, part.Names())
	rows, err := d.Summary()
	require.NoError(t, err)
	require.Equal(t, "b[age]", rows[0].Name)

	require.ErrorIs(t, d.Label("c", []string{"a"}), draws.ErrUnknownName)
	for _, along := range [][][]string{{{"a"}}, {{"a", "b"}, {"c"}}, {{"a\n", "b"}}} {
		require.ErrorIs(t, d.Label("b", along...), draws.ErrLayout)
	}
}
