package large_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/data/large"
)

func shuffle(t testing.TB, n int, seed, epoch uint64) *large.Shuffle {
	t.Helper()
	s, err := large.NewShuffle(n, seed, epoch)
	require.NoError(t, err)
	return s
}

// Every row comes exactly once, for each n around powers of two, where the halves of the network change their widths.
func TestShuffleIsABijection(t *testing.T) {
	sizes := []int{4095, 4096, 4097, 8191, 8192, 8193, 65537, 100003}
	for n := int(1); n <= 300; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for epoch := range uint64(3) {
			s, seen := shuffle(t, n, uint64(n), epoch), make([]bool, n)
			for i := range n {
				row := s.At(i)
				require.True(t, row >= 0 && row < n && !seen[row], "n %d, epoch %d, place %d: row %d", n, epoch, i, row)
				seen[row] = true
			}
		}
	}
	s := shuffle(t, 1<<62, 1, 1) // the largest
	seen := map[int]bool{}
	for i := range int(10000) {
		row := s.At(i)
		require.True(t, row >= 0 && row < 1<<62 && !seen[row])
		seen[row] = true
	}
}

// likely asserts that counts have equal expectations: Pearson's statistic of independent counts has the chi-square law
// with one degree of freedom fewer than cells. Both tails have 3.2e-5, as a normal number has beyond four.
func likely(t *testing.T, counts []float64, what ...any) {
	t.Helper()
	total, statistic := 0.0, 0.0
	for _, c := range counts {
		total += c
	}
	want := total / float64(len(counts))
	require.Greater(t, want, 10.0)
	for _, c := range counts {
		statistic += (c - want) * (c - want) / want
	}
	p := distuv.ChiSquared{K: float64(len(counts) - 1)}.CDF(statistic)
	assert.InDelta(t, 0.5, p, 0.5-3.2e-5, what...)
}

// Over epochs a row is at each place equally often, and two rows at each pair of places.
func TestShuffleOverEpochs(t *testing.T) {
	const epochs = 40000
	for _, n := range []int{2, 3, 5, 8, 31, 64, 65} {
		for _, row := range []int{0, n - 1} {
			counts := make([]float64, n)
			for epoch := range uint64(epochs) {
				counts[shuffle(t, n, 7, epoch).At(row)]++
			}
			likely(t, counts, "n %d, place %d", n, row)
		}
	}
	const n = 7
	for _, other := range []int{1, 3, 6} {
		pairs := make([]float64, n*(n-1))
		for epoch := range uint64(epochs) {
			s := shuffle(t, n, 11, epoch)
			a, b := s.At(0), s.At(other)
			if b > a {
				b--
			}
			pairs[a*(n-1)+b]++
		}
		likely(t, pairs, "places 0 and %d", other)
	}
	// The orders of three rows: all six, equally often. Seeds take the place of epochs as well.
	orders := make([]float64, 9)
	for seed := range uint64(epochs) {
		s := shuffle(t, 3, seed, 0)
		orders[3*s.At(0)+s.At(1)]++
	}
	likely(t, []float64{orders[1], orders[2], orders[3], orders[5], orders[6], orders[7]}, "orders")
}

// Within an epoch of 10^8 rows, and from one epoch to the next, neighbours are independent: pairs of rows fall into the
// cells of a 16 by 16 grid equally often. 100,000 pairs are so few that drawing without replacement does not show: it
// takes 2·10^5/10^8 = 0.2 % off the variance, and the statistic has a standard deviation of √(2/255) = 9 %.
func TestShuffleNeighbours(t *testing.T) {
	const n, pairs, k = 100_000_000, 100_000, 16
	cell := func(row int) int { return row * k / n }
	for what, pair := range map[string]func(i int) (int, int){
		"neighbours": func() func(i int) (int, int) {
			s := shuffle(t, n, 3, 0)
			return func(i int) (int, int) { return cell(s.At(2 * i)), cell(s.At(2*i + 1)) }
		}(),
		"256 apart": func() func(i int) (int, int) {
			s := shuffle(t, n, 3, 1)
			return func(i int) (int, int) { return cell(s.At(512*i + i%256)), cell(s.At(512*i + i%256 + 256)) }
		}(),
		"epochs": func() func(i int) (int, int) {
			s, next := shuffle(t, n, 3, 0), shuffle(t, n, 3, 1)
			return func(i int) (int, int) { return cell(s.At(i)), cell(next.At(i)) }
		}(),
		"seeds": func() func(i int) (int, int) {
			s, next := shuffle(t, n, 3, 0), shuffle(t, n, 4, 0)
			return func(i int) (int, int) { return cell(s.At(i)), cell(next.At(i)) }
		}(),
		"low digits": func() func(i int) (int, int) {
			s := shuffle(t, n, 5, 0)
			return func(i int) (int, int) { return s.At(2*i) % k, s.At(2*i+1) % k }
		}(),
	} {
		counts := make([]float64, k*k)
		for i := range int(pairs) {
			a, b := pair(i)
			counts[a*k+b]++
		}
		likely(t, counts, what)
	}
}

// What no shuffle can be is an error or -1; a place outside is one inside.
func TestShuffleMisuse(t *testing.T) {
	for _, n := range []int{math.MinInt64, 0, 1<<62 + 1} {
		_, err := large.NewShuffle(n, 1, 1)
		assert.ErrorContains(t, err, "expected 1 to 2^62")
	}
	assert.Equal(t, int(-1), new(large.Shuffle).At(3))
	s := shuffle(t, 10, 1, 1)
	assert.Equal(t, s.At(3), s.At(13))
	assert.Equal(t, s.At(3), s.At(-7))
}
