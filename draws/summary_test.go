package draws

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
)

var nan, inf = math.NaN(), math.Inf(1)

// 1e9 + noise: the textbook formula (sum of squares minus squared sum) has no correct digit left here. The noise is a
// multiple of 2^-20, which 1e9 + noise holds exactly, so the moments are those of the noise alone.
func TestMomentsLargeOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 10000
	noise, shifted := make([]float64, n), make([]float64, n)
	for i := range noise {
		noise[i] = math.Round(rng.NormFloat64()*(1<<20)) / (1 << 20)
		shifted[i] = 1e9 + noise[i]
	}
	wantMean, wantSD := stat.MeanStdDev(noise, nil)
	d := column(t, shifted...)
	near(t, "mean", must(d.Mean("x"))(t)[0], 1e9+wantMean, 3e-16) // an ulp of 1e9 is 1.2e-7
	near(t, "sd", must(d.SD("x"))(t)[0], wantSD, 1e-13)
}

// gonum's moments are an independent implementation. The chains have unequal lengths, and 19 elements are not a
// multiple of the eight that are gathered at a time.
func TestSummaryAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sites := []Site{{Name: "a", Shape: []int{19}, Offset: 0, Size: 19}, {Name: "b", Shape: nil, Offset: 19, Size: 1}}
	d := must(New(sites, []string{"lp"}, 3))(t)
	pooled := make([][]float64, 20)
	for c, n := range []int{50, 0, 21} {
		for range n {
			x := make([]float64, 20)
			for e := range x {
				x[e] = float64(e) + 10*rng.NormFloat64()
				pooled[e] = append(pooled[e], x[e])
			}
			if err := d.AppendChain(c, x, []float64{nan}); err != nil { // a statistic must not leak into a parameter
				t.Fatal(err)
			}
		}
	}
	rows := must(d.Summary(0, 0.3, 1))(t)
	mean := slices.Concat(must(d.Mean("a"))(t), must(d.Mean("b"))(t))
	sd := slices.Concat(must(d.SD("a"))(t), must(d.SD("b"))(t))
	q := must(d.Quantile("a", 0.3))(t)
	for e, x := range pooled {
		equalFloats(t, "pooled", d.Pooled(e), x)
		wantMean, wantSD := stat.MeanStdDev(x, nil)
		near(t, "mean", rows[e].Mean, wantMean, 1e-14)
		near(t, "sd", rows[e].SD, wantSD, 1e-14)
		slices.Sort(x)
		// n is 71, so 0.3 (n - 1) is 21: the quantile is an order statistic.
		equalFloats(t, "quantiles", rows[e].Quantiles, []float64{x[0], x[21], x[70]})
		equalFloats(t, "Mean and SD", []float64{mean[e], sd[e]}, []float64{rows[e].Mean, rows[e].SD})
		if e < 19 {
			equalFloats(t, "Quantile", []float64{q[0][e]}, []float64{x[21]})
		}
	}
	if rows[18].Name != "a[18]" || rows[19].Name != "b" {
		t.Errorf("names %q %q", rows[18].Name, rows[19].Name)
	}
}

// Summaries are laid out in row-major order of the site, and do not change the container.
func TestSummaryOrder(t *testing.T) {
	d := testDraws(t, 3, 3)
	// Chain c, draw i, element e is 10000c + 100i + e: the mean is 5000 + 100 + e, the median between 200 + e and 10000
	// + e.
	equalFloats(t, "mean", must(d.Mean("w"))(t), []float64{5103, 5104, 5105, 5106, 5107, 5108})
	q := must(d.Quantile("w", 0.5, 1))(t)
	equalFloats(t, "median", q[0], []float64{5103, 5104, 5105, 5106, 5107, 5108})
	equalFloats(t, "maximum", q[1], []float64{10203, 10204, 10205, 10206, 10207, 10208})
	equalDraws(t, d, testDraws(t, 3, 3))
}

func TestSummaryErrors(t *testing.T) {
	empty, full := testDraws(t, 0, 0), testDraws(t, 1, 0)
	for _, c := range []struct {
		name string
		call func() error
		kind error
		text string
	}{
		{"mean", func() error { _, err := empty.Mean("tau"); return err }, ErrNoDraws,
			`draws: mean of "tau": there are no draws`},
		{"sd", func() error { _, err := empty.SD("tau"); return err }, ErrNoDraws,
			`draws: sd of "tau": there are no draws`},
		{"quantile", func() error { _, err := empty.Quantile("tau"); return err }, ErrNoDraws,
			`draws: quantile of "tau": there are no draws`},
		{"summary", func() error { _, err := empty.Summary(); return err }, ErrNoDraws,
			`draws: summary: there are no draws`},
		{"unknown mean", func() error { _, err := full.Mean("mu"); return err }, ErrUnknownName,
			`draws: no site "mu"; the sites are "tau", "v", "w"`},
		{"unknown sd", func() error { _, err := full.SD("mu"); return err }, ErrUnknownName,
			`draws: no site "mu"; the sites are "tau", "v", "w"`},
		{"unknown quantile", func() error { _, err := full.Quantile("mu"); return err }, ErrUnknownName,
			`draws: no site "mu"; the sites are "tau", "v", "w"`},
		{"above", func() error { _, err := full.Quantile("tau", 0.5, 95); return err }, ErrRange,
			`draws: probability 1 is 95, want 0 to 1`},
		{"below", func() error { _, err := full.Summary(-0.1); return err }, ErrRange,
			`draws: probability 0 is -0.1, want 0 to 1`},
		{"NaN", func() error { _, err := full.Summary(nan); return err }, ErrRange,
			`draws: probability 0 is NaN, want 0 to 1`},
	} {
		t.Run(c.name, func(t *testing.T) { checkError(t, c.call(), c.kind, c.text) })
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		name    string
		x, p, q []float64
	}{
		// h = 4p; 0.1 is at h = 0.4, between 1 and 2.
		{"1 to 5", []float64{3, 1, 5, 2, 4}, []float64{0, 0.1, 0.25, 0.5, 0.9, 1}, []float64{1, 1.4, 2, 3, 4.6, 5}},
		// The example of NumPy's documentation of quantile and percentile: the median of 10 7 4 3 2 1 is 3.5.
		{"NumPy", []float64{10, 7, 4, 3, 2, 1}, []float64{0.5}, []float64{3.5}},
		// statistics.quantiles([12, 15, 21, 22, 30, 41, 57], n=4, method="inclusive") of Python is [18.0, 22.0, 35.5].
		{"Python", []float64{57, 12, 15, 30, 21, 41, 22}, []float64{0.25, 0.5, 0.75}, []float64{18, 22, 35.5}},
		// The same for these eight squares with n=10, without the median; 0.8 is at h = 5.6, so 25 + 0.6 (36 - 25).
		{"Python, tenths", []float64{0, 1, 4, 9, 16, 25, 36, 49}, []float64{0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9},
			[]float64{0.7, 2.2, 4.5, 8, 17.8, 24.1, 31.6, 39.9}},
		{"single", []float64{7}, []float64{0, 0.3, 1}, []float64{7, 7, 7}},
		{"ties", []float64{0.1, 0.1, 0.1}, []float64{0.05, 0.77}, []float64{0.1, 0.1}},
		{"defaults", []float64{0, 100}, nil, []float64{5, 50, 95}},
		{"NaN", []float64{1, nan, 2}, []float64{0, 0.5}, []float64{nan, nan}},
		{"Inf", []float64{1, 2, inf}, []float64{0.25, 0.5, 0.51, 1}, []float64{1.5, 2, inf, inf}},
		{"-Inf", []float64{1, 2, -inf}, []float64{0, 0.49, 0.5}, []float64{-inf, -inf, 1}},
		{"two Inf", []float64{1, inf, inf}, []float64{0.75}, []float64{inf}},
		{"-Inf to Inf", []float64{inf, -inf}, []float64{0, 0.5, 1}, []float64{-inf, nan, inf}},
		// The gap overflows; (1 - 0.25) (-m) + 0.25 m is -m/2.
		{"huge gap", []float64{math.MaxFloat64, -math.MaxFloat64}, []float64{0.25}, []float64{-math.MaxFloat64 / 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := must(column(t, c.x...).Quantile("x", c.p...))(t)
			if len(q) != len(c.q) {
				t.Fatalf("%d quantiles, want %d", len(q), len(c.q))
			}
			for k := range q {
				near(t, "quantile", q[k][0], c.q[k], 4e-16)
			}
		})
	}
}

func TestFormatTable(t *testing.T) {
	rows := []Row{
		{"mu", -1234.56, 0.000012345, []float64{-2000, nan, 3}},
		{"größe[0,1]", 0.5, nan, []float64{-inf, 0, 123456}}, // width is counted in letters, not bytes
	}
	want := `name         mean         sd   2.5%  50%      97.5%
mu          -1235  1.234e-05  -2000  NaN          3
größe[0,1]    0.5        NaN   -Inf    0  1.235e+05
`
	var b strings.Builder
	if err := FormatTable(&b, rows, []float64{0.025, 0.5, 0.975}); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// 100 * 0.07 is 7.000000000000001; the head says 7%.
func TestFormatTableHead(t *testing.T) {
	var b strings.Builder
	if err := FormatTable(&b, nil, []float64{0.07, 0.999}); err != nil {
		t.Fatal(err)
	}
	if want := "name  mean  sd  7%  99.9%\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestFormatTableErrors(t *testing.T) {
	rows := []Row{{"mu", 0, 1, []float64{0}}}
	checkError(t, FormatTable(&strings.Builder{}, rows, nil), ErrSize,
		`draws: table: row 0 ("mu") has 1 quantiles, want 3, one per probability`)
	checkError(t, FormatTable(&strings.Builder{}, rows, []float64{5}), ErrRange,
		`draws: probability 0 is 5, want 0 to 1`)
	checkError(t, FormatTable(&full{0}, rows, []float64{0.5}), errFull, `draws: write table: disk full`)
}

// full is a writer that fails after some bytes.
type full struct{ left int }

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}
