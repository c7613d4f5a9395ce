package plot

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/draws"
)

func reliability(t *testing.T) *score.Reliability {
	r, err := score.Calibration([]float64{0.1, 0.2, 0.7, 0.8, 0.9, 0.95}, []bool{false, false, true, false, true, true},
		score.Binning{Bins: 4})
	require.NoError(t, err)
	return r
}

// The picture has the size asked for, two pictures are the same, and bars of half the accuracy have half the area.
func TestReliability(t *testing.T) {
	var b, again bytes.Buffer
	require.NoError(t, Reliability(&b, reliability(t), Options{Width: 4, Height: 3}))
	require.NoError(t, Reliability(&again, reliability(t), Options{Width: 4, Height: 3}))
	require.Equal(t, b.Bytes(), again.Bytes())
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, image.Pt(384, 288), img.Bounds().Size())
	bars := count(img, light)
	require.Positive(t, bars)

	r := reliability(t)
	for k := range r.Bins {
		r.Bins[k].Accuracy /= 2
	}
	var half bytes.Buffer
	require.NoError(t, Reliability(&half, r, Options{Width: 4, Height: 3}))
	img, err = png.Decode(&half)
	require.NoError(t, err)
	require.InEpsilon(t, bars/2, count(img, light), 0.1) // lines over the bars take a little of each
	require.Positive(t, count(img, orange))
}

func TestKinetic(t *testing.T) {
	var k thermo.Kinetic
	for _, v := range []float64{1, 0.9, 1.1, 5} {
		_, err := k.AddValue("w", 0, 20, 0.1*v, 0.1)
		require.NoError(t, err)
	}
	var b bytes.Buffer
	require.NoError(t, Kinetic(&b, k.Readings(), Options{}))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, image.Pt(480, 480), img.Bounds().Size())
	in, out := count(img, blue), count(img, orange)
	require.Positive(t, out)
	require.InEpsilon(t, 3*out, in, 0.3) // three points inside and one outside
}

func TestFormats(t *testing.T) {
	for format, start := range map[string]string{"": "\x89PNG", "png": "\x89PNG", "svg": "<?xml", "pdf": "%PDF"} {
		var b bytes.Buffer
		require.NoError(t, Reliability(&b, reliability(t), Options{Format: format, Title: "a"}))
		require.Equal(t, start, b.String()[:len(start)], format)
	}
}

func TestErrors(t *testing.T) {
	var b bytes.Buffer
	err := Reliability(&b, reliability(t), Options{Format: "gif"})
	require.ErrorIs(t, err, draws.ErrRange)
	require.EqualError(t, err, `diag/plot: out of range: format "gif", want png, svg or pdf`)
	for _, side := range []float64{-1, math.NaN(), 101, math.Inf(1)} {
		require.ErrorIs(t, Reliability(&b, reliability(t), Options{Width: side}), draws.ErrRange)
		require.ErrorIs(t, Kinetic(&b, []thermo.KineticReading{{}}, Options{Height: side}), draws.ErrRange)
	}
	require.ErrorIs(t, Reliability(&b, nil, Options{}), draws.ErrRange)
	require.ErrorIs(t, Reliability(&b, &score.Reliability{Bins: []score.Bin{{Cases: 1, Accuracy: math.NaN()}}},
		Options{}), draws.ErrRange)
	require.ErrorIs(t, Kinetic(&b, nil, Options{}), draws.ErrRange)
	require.ErrorIs(t, Kinetic(&b, []thermo.KineticReading{{}}, Options{}), draws.ErrRange)
	require.Zero(t, b.Len())
	require.ErrorIs(t, Reliability(broken{}, reliability(t), Options{}), errBroken)
	require.NoError(t, Reliability(&b, &score.Reliability{Bins: make([]score.Bin, 3)}, Options{})) // no cases
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
