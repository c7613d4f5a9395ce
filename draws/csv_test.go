package draws

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// Every float64 must come back bit for bit (a NaN as a NaN): 17 significant digits identify a double.
func TestCSVRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	d := must(New([]Site{{`quoted "name", with comma`, []int64{2}, 0, 2}, {"w", []int64{1, 2}, 2, 2}},
		[]string{"lp", "a b", " ", `x,y`}, 3))(t)
	special := []float64{nan, inf, -inf, math.Copysign(0, -1), 0, 0.1, 1. / 3, math.MaxFloat64,
		-math.SmallestNonzeroFloat64, math.Pi, 1e16, 123456789}
	next := 0
	number := func() float64 {
		if next++; next <= len(special) {
			return special[next-1]
		}
		return math.Float64frombits(rng.Uint64()) // all exponents, and NaNs
	}
	for c, n := range []int{100, 0, 37} {
		for range n {
			row := make([]float64, 8)
			for k := range row {
				row[k] = number()
			}
			if err := d.AppendChain(c, row[:4], row[4:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if err := d.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	equalDraws(t, must(ReadCSV(&b, d.Sites()))(t), d)
}

func TestCSVText(t *testing.T) {
	d := must(New([]Site{{"tau", nil, 0, 1}, {"w", []int64{1, 2}, 1, 2}}, []string{"lp"}, 2))(t)
	if err := d.Append([]float64{1, 0.5, -2, 1e-7, nan, -inf}, []float64{-7.25, inf}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `chain,draw,lp,tau,"w[0,0]","w[0,1]"
0,0,-7.25,1,0.5,-2
1,0,+Inf,9.9999999999999995e-08,NaN,-Inf
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// Chains may be mixed, as when a sampler writes as it goes; a chain may be without draws; line ends may
// be those of Windows.
func TestReadCSVMixedChains(t *testing.T) {
	text := "chain,draw,lp,x\r\n2,0,-1,5\r\n0,0,-2,6\r\n2,1,-3,7\r\n"
	d := must(ReadCSV(strings.NewReader(text), []Site{{Name: "x", Size: 1}}))(t)
	if d.Chains() != 3 || d.Len(1) != 0 {
		t.Errorf("%d chains, want 3; %d draws in chain 1, want 0", d.Chains(), d.Len(1))
	}
	equalFloats(t, "chain 2", d.Element(2, 0), []float64{5, 7})
	equalFloats(t, "lp", must(d.Stat("lp", 0))(t), []float64{-2})
}

// A file without draws has one empty chain; sites and statistics are optional.
func TestCSVEmpty(t *testing.T) {
	for _, d := range []*Draws{must(New(testSites(), []string{"lp"}, 1))(t), must(New(nil, nil, 1))(t)} {
		var b bytes.Buffer
		if err := d.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		equalDraws(t, must(ReadCSV(&b, d.Sites()))(t), d)
	}
	d := must(New(nil, nil, 2))(t) // draws without any number
	if err := d.Append(nil, nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	equalDraws(t, must(ReadCSV(&b, nil))(t), d)
}

func TestReadCSVErrors(t *testing.T) {
	sites := []Site{{"x", []int64{2}, 0, 2}}
	const header = "chain,draw,lp,x[0],x[1]\n"
	for _, c := range []struct {
		name, file string
		kind       error
		text       string
	}{
		{"empty", "", ErrLayout, `draws: read CSV: the file is empty, want a header`},
		{"short header", "chain,draw,x[0]\n", ErrLayout,
			`draws: read CSV: the header has 3 columns, want chain, draw and the 2 elements of the sites`},
		{"no chain", "Chain,draw,x[0],x[1]\n", ErrLayout, `draws: read CSV: column 1 is "Chain", want "chain"`},
		{"no draw", "chain,iteration,x[0],x[1]\n", ErrLayout, `draws: read CSV: column 2 is "iteration", want "draw"`},
		{"other sites", "chain,draw,lp,x[0],y\n", ErrLayout,
			`draws: read CSV: column 5 is "y", want "x[1]", as the sites are laid out`},
		{"repeated statistic", "chain,draw,lp,lp,x[0],x[1]\n", ErrLayout,
			`draws: read CSV: header: draws: statistic 1: name "lp" is also that of statistic 0; names must be unique`},
		{"bad header quote", "chain,\"dr\"aw\n", csv.ErrQuote, "draws: read CSV: header: parse error on line 1, " +
			"column 10: extraneous or missing \" in quoted-field"},
		{"fields", header + "0,0,1,2\n", csv.ErrFieldCount,
			`draws: read CSV: record on line 2: wrong number of fields`},
		{"number", header + "0,0,1,2,3\n0,1,1,2,abc\n", strconv.ErrSyntax,
			`draws: read CSV: line 3, column 5: want a number: strconv.ParseFloat: parsing "abc": invalid syntax`},
		{"no number", header + "0,0,,2,3\n", strconv.ErrSyntax,
			`draws: read CSV: line 2, column 3: want a number: strconv.ParseFloat: parsing "": invalid syntax`},
		{"large number", header + "0,0,1,2,1e999\n", strconv.ErrRange,
			`draws: read CSV: line 2, column 5: want a number: strconv.ParseFloat: parsing "1e999": value out of range`},
		{"chain", header + "1.5,0,1,2,3\n", ErrRange,
			`draws: read CSV: line 2: chain "1.5", want an integer from 0 to 1048575`},
		{"negative chain", header + "-1,0,1,2,3\n", ErrRange,
			`draws: read CSV: line 2: chain "-1", want an integer from 0 to 1048575`},
		{"large chain", header + "1048576,0,1,2,3\n", ErrRange,
			`draws: read CSV: line 2: chain "1048576", want an integer from 0 to 1048575`},
		{"missing draw", header + "0,0,1,2,3\n0,2,1,2,3\n", ErrRange,
			`draws: read CSV: line 3: draw "2" of chain 0, want 1, the next one`},
		{"repeated draw", header + "0,0,1,2,3\n0,0,1,2,3\n", ErrRange,
			`draws: read CSV: line 3: draw "0" of chain 0, want 1, the next one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadCSV(strings.NewReader(c.file), sites)
			checkError(t, err, c.kind, c.text)
		})
	}
	_, err := ReadCSV(strings.NewReader(header), []Site{{"x", []int64{2}, 1, 2}})
	checkError(t, err, ErrLayout, `draws: site 0 ("x"): offset is 1, want 0, the end of the sites before it`)
}

// full is a writer and a reader that fails after some bytes.
type full struct{ left int }

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

func (f *full) Read([]byte) (int, error) { return 0, errFull }

// The writer buffers 4096 bytes, so it fails at the header, at a row, or at the end, by size.
func TestCSVWriterErrors(t *testing.T) {
	d := testDraws(t, 400, 0)
	if err := d.WriteCSV(&full{5000}); !errors.Is(err, errFull) ||
		!strings.HasPrefix(err.Error(), "draws: write CSV: chain 0, draw ") {
		t.Errorf("got %v", err)
	}
	checkError(t, testDraws(t, 1, 1).WriteCSV(&full{0}), errFull, `draws: write CSV: disk full`)
	wide := must(New([]Site{{"w", []int64{2000}, 0, 2000}}, nil, 1))(t)
	checkError(t, wide.WriteCSV(&full{0}), errFull, `draws: write CSV: header: disk full`)
	_, err := ReadCSV(&full{}, nil)
	checkError(t, err, errFull, `draws: read CSV: header: disk full`)
}
