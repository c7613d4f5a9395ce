package plot

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// normal are independent draws of some chains.
func normal(k, n int) [][]float64 {
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	x := make([][]float64, k)
	for c := range x {
		for range n {
			x[c] = append(x[c], rng.NormFloat64())
		}
	}
	return x
}

// stored are draws of an element that is v plus noise, and of one that is 0 to the width; the first ones diverged.
func stored(t *testing.T, n, diverged int) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1}},
		[]string{draws.StatDivergent}, 1)
	require.NoError(t, err)
	for i := range n {
		bad := 0.0
		if i < diverged {
			bad = 1
		}
		at := 2 * math.Pi * float64(i) / float64(n)
		require.NoError(t, d.AppendChain(0, []float64{math.Cos(at), math.Sin(at)}, []float64{bad}))
	}
	return d
}

func picture(t *testing.T, draw func(w io.Writer, o Options) error) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b, Options{}))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, image.Pt(480, 480), img.Bounds().Size())
	return img
}

func text(t *testing.T, draw func(w io.Writer, o Options) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b, Options{Format: "svg"}))
	return b.String()
}

func count(img image.Image, c color.Color) (n int) {
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if color.RGBAModel.Convert(img.At(x, y)) == color.RGBAModel.Convert(c) {
				n++
			}
		}
	}
	return n
}

type drawing = func(w io.Writer, x [][]float64, o Options) error

var drawings = map[string]drawing{
	"ranks": Rank, "density": Density, "energy": Energy, "growth": Growth,
	"trace": Trace,
	"autocorrelation": func(w io.Writer, x [][]float64, o Options) error {
		return Autocorrelation(w, x, 0, o)
	},
}

// Every chain has its colour in the pictures that draw one line for each; the others have their two.
func TestEveryChainIsDrawn(t *testing.T) {
	for name, draw := range drawings {
		two := picture(t, func(w io.Writer, o Options) error { return draw(w, normal(2, 200), o) })
		three := picture(t, func(w io.Writer, o Options) error { return draw(w, normal(3, 200), o) })
		switch name {
		case "trace": // its lines are seen through
		case "growth", "energy":
			require.Positive(t, count(two, blue), name)
			require.Positive(t, count(two, orange), name)
		default:
			for k := range 3 {
				require.Positive(t, count(three, chainColour(k)), "%s, chain %d", name, k)
			}
			require.Zero(t, count(two, chainColour(2)), name)
		}
	}
}

// A picture of chains that agree is not that of chains that do not: the ranks of those leave the grey area, of which
// more is then seen.
func TestRanksShowDisagreement(t *testing.T) {
	same, other := normal(2, 1000), normal(2, 1000)
	for i := range other[1] {
		other[1][i] += 3
	}
	// The share of the height, whose scale follows the counts: above the letters, where lines cover least of it.
	grey := func(x [][]float64) float64 {
		img := picture(t, func(w io.Writer, o Options) error { return Rank(w, x, o) })
		white := color.RGBAModel.Convert(color.White)
		most := 0
		for x := 100; x < 450; x++ {
			n := 0
			for y := range 425 {
				c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
				if c.R == c.G && c.G == c.B && c != white && c.R > 150 {
					n++
				}
			}
			most = max(most, n)
		}
		return float64(most)
	}
	require.Greater(t, grey(same), 1.5*grey(other))
}

// The widest interval ends inside of the picture: 4 % of the width at least are free on both sides.
func TestForestMargin(t *testing.T) {
	img := picture(t, func(w io.Writer, o Options) error { return Forest(w, stored(t, 100, 0), nil, o) })
	first, last := 480, 0
	for x := range 480 {
		for y := range 480 {
			if color.RGBAModel.Convert(img.At(x, y)) == color.RGBAModel.Convert(blue) {
				first, last = min(first, x), max(last, x)
			}
		}
	}
	require.Less(t, last, 480-480*4/100)
	require.Greater(t, first, 480*4/100)
}

// Twice as many divergences have twice the area, and the title counts them.
func TestPair(t *testing.T) {
	area := func(n int) int {
		d := stored(t, 200, n)
		require.Contains(t, text(t, func(w io.Writer, o Options) error { return Pair(w, d, "a", "b", o) }),
			map[int]string{10: "10 of 200", 20: "20 of 200"}[n])
		return count(picture(t, func(w io.Writer, o Options) error { return Pair(w, d, "a", "b", o) }),
			orange)
	}
	require.InEpsilon(t, 2*area(10), area(20), 0.3) // neighbours cover parts of each other
}

// A forest of two elements has two medians and the names; one of one has half.
func TestForest(t *testing.T) {
	d := stored(t, 100, 0)
	medians := func(names ...string) int {
		return count(picture(t, func(w io.Writer, o Options) error { return Forest(w, d, names, o) }),
			orange)
	}
	require.InEpsilon(t, 2*medians("a"), medians(), 0.3) // edges are between colours
	svg := text(t, func(w io.Writer, o Options) error { return Forest(w, d, nil, o) })
	require.Contains(t, svg, ">a<")
	require.Contains(t, svg, ">b<")
}

// What turns text around is written out in titles, labels and names of elements.
func TestHiddenCharactersAreSeen(t *testing.T) {
	d, err := draws.New([]draws.Site{{Name: "a\u202eb", Size: 1}, {Name: "c", Offset: 1, Size: 1}}, nil, 1)
	require.NoError(t, err)
	for i := range 9 {
		require.NoError(t, d.AppendChain(0, []float64{float64(i), float64(i * i)}, nil))
	}
	for _, draw := range []func(w io.Writer, o Options) error{
		func(w io.Writer, o Options) error { return Forest(w, d, nil, o) },
		func(w io.Writer, o Options) error { return Pair(w, d, d.Names()[0], "c", o) },
		func(w io.Writer, o Options) error { o.Title = "a\u202eb"; return Trace(w, normal(1, 9), o) },
		func(w io.Writer, o Options) error {
			x := []float64{1, 2}
			return Curve(w, x, x, nil, "x", "a\u202eb", o)
		},
	} {
		svg := text(t, draw)
		require.Contains(t, svg, `a\u202eb`)
		require.NotContains(t, svg, "\u202e")
	}
}

// The title of the energies has the least E-BFMI: that of independent energies is near 2.
func TestEnergyTitle(t *testing.T) {
	svg := text(t, func(w io.Writer, o Options) error { return Energy(w, normal(1, 4000), o) })
	require.Regexp(t, `E-BFMI (1\.9|2\.0)`, svg)
}

func TestChainErrors(t *testing.T) {
	for name, draw := range drawings {
		for _, x := range [][][]float64{nil, {{}}, {{1, math.NaN(), 2}}} {
			require.ErrorIs(t, draw(io.Discard, x, Options{}), draws.ErrRange, name)
		}
		require.ErrorIs(t, draw(nil, normal(1, 100), Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, normal(1, 100), Options{Format: "gif"}), draws.ErrRange, name)
		require.ErrorIs(t, draw(broken{}, normal(1, 100), Options{}), errBroken, name)
		if still := draw(io.Discard, [][]float64{make([]float64, 100)}, Options{}); name != "trace" && name != "ranks" {
			require.ErrorIs(t, still, draws.ErrRange, name)
		} else {
			require.NoError(t, still, name)
		}
	}
	require.ErrorIs(t, Trace(io.Discard, [][]float64{{-1.7e308, 1.7e308}}, Options{}), draws.ErrRange)
	require.NoError(t, Trace(io.Discard, [][]float64{{1e300, 1e300}}, Options{}))
	require.ErrorIs(t, Autocorrelation(io.Discard, normal(1, 100), 100, Options{}), draws.ErrRange)
	d := stored(t, 10, 0)
	require.ErrorIs(t, Pair(io.Discard, d, "a", "c", Options{}), draws.ErrRange)
	require.ErrorIs(t, Pair(io.Discard, nil, "a", "b", Options{}), draws.ErrRange)
	require.ErrorIs(t, Forest(io.Discard, d, []string{"c"}, Options{}), draws.ErrRange)
	require.ErrorIs(t, Forest(io.Discard, nil, nil, Options{}), draws.ErrRange)
	require.ErrorIs(t, Forest(io.Discard, d, make([]string, 201), Options{}), draws.ErrRange)
}
