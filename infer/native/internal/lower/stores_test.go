package lower

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Stores at equal distances are one, in whatever order they come; others stay.
func TestInStep(t *testing.T) {
	even, odd, other := &value{n: 40}, &value{n: 40}, &value{n: 40}
	store := func(from *value, at, to int) *item {
		return &item{what: store, space: []int{4}, args: []ref{{v: from, off: at, strides: []int{1}}},
			dst: ref{off: to, strides: []int{1}}}
	}
	var all []*item
	for k := range 10 {
		all = append(all, store(even, 4*k, 8*k), store(odd, 36-4*k, 8*k+4))
	}
	all = append(all, store(other, 0, 80), store(other, 8, 84))
	out := inStep(all)
	require.Len(t, out, 4)
	require.Equal(t, []int{10, 4}, out[0].space)
	require.Equal(t, []int{4, 1}, out[0].args[0].strides)
	require.Equal(t, []int{8, 1}, out[0].dst.strides)
	require.Equal(t, 36, out[1].args[0].off)
	require.Equal(t, []int{-4, 1}, out[1].args[0].strides)
	require.Equal(t, 4, out[1].dst.off)
	require.Equal(t, all[20:], out[2:])
}

// Two recordings are one where they differ in memory alone that the plan does not read.
func TestSameBytes(t *testing.T) {
	a := &trace{bytes: []byte("textxxxxmoreyy"), unused: [][2]int{{4, 8}, {12, 14}}}
	require.True(t, a.sameBytes([]byte("text1234morezz")))
	require.False(t, a.sameBytes([]byte("text1234mOrezz")))
	require.False(t, a.sameBytes([]byte("text1234morezzz")))
}
