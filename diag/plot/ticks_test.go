package plot

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
)

// ticks are round numbers within the axis, with 0 where that is in view and no more decimals than the step has.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		whole     bool
		want      []string
	}{
		{-7, 20, false, []string{"-5", "0", "5", "10", "15", "20"}},
		{-0.5, 20.8, false, []string{"0", "5", "10", "15", "20"}},
		{0, 0.3, false, []string{"0", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"}},
		{-0.4, 3.4, true, []string{"0", "1", "2", "3"}},
		{-0.4, 0.4, true, []string{"0"}},
		{0, 3e7, false, []string{"0", "5e+06", "1e+07", "1.5e+07", "2e+07", "2.5e+07", "3e+07"}},
		{0, 3e-7, false, []string{"0", "5e-08", "1e-07", "1.5e-07", "2e-07", "2.5e-07", "3e-07"}},
	} {
		ticks := ticks{Whole: c.whole}.Ticks(c.low, c.high)
		var labels []string
		for _, tick := range ticks {
			labels = append(labels, tick.Label)
			require.GreaterOrEqual(t, tick.Value, c.low-1e-9*(c.high-c.low))
			require.LessOrEqual(t, tick.Value, c.high+1e-9*(c.high-c.low))
		}
		require.Equal(t, c.want, labels)
	}
	require.Equal(t, 0.15, ticks{}.Ticks(0, 0.3)[3].Value)
	for _, extreme := range [][2]float64{{1e18, 1e18 + 256}, {1e300, 1.1e300}, {5e-324, 1e-323}, {-1e308, 7e307}} {
		require.LessOrEqual(t, len(ticks{}.Ticks(extreme[0], extreme[1])), 20)
	}
}

func TestMargin(t *testing.T) {
	a := plot.Axis{Min: -10, Max: 10}
	margin(&a)
	require.Equal(t, [2]float64{-11, 11}, [2]float64{a.Min, a.Max})
}
