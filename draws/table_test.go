package draws

import (
	"strings"
	"testing"
)

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
