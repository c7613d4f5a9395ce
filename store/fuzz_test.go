package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// What the CSV reader accepts it writes and reads again alike; what it does not is an error.
func FuzzReadCSV(f *testing.F) {
	noSync(f)
	text, err := os.ReadFile("testdata/cmdstan_2.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("lp__,theta.1,theta.2\n-1,nan,inf\n"))
	f.Add([]byte("chain,draw,x\n"))
	f.Add([]byte("chain,draw,lp,mu,\"w[0,0]\",\"w[0,1]\"\n0,0,-1,1,2,3\n1,0,-2,4,5,6\n"))
	f.Add([]byte(`# kelvin_layout {"sites":[{"name":"a.b","shape":[1]},{"name":"e","shape":[0]}],"stats":["lp"]}` +
		"\nlp__,a_b.1\n1,2\n3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		inf, err := Read(bytes.NewReader(text))
		// The reader finds out what it reads, and JSON need not have a posterior.
		if err != nil || !utf8.Valid(text) || inf.Posterior == nil ||
			inf.Posterior.Dim()+len(inf.Posterior.Stats()) == 0 {
			return
		}
		inf.Attrs = nil
		base := filepath.Join(t.TempDir(), "run")
		paths, err := WriteCSV(base, inf, CSVOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(paths...)
		if err != nil {
			t.Fatal(err)
		}
		identical(t, inf.Posterior, again.Posterior)
		if inf.Warmup != nil {
			identical(t, inf.Warmup, again.Warmup)
		}
	})
}

// The same of the JSON reader.
func FuzzReadJSON(f *testing.F) {
	noSync(f)
	text, err := os.ReadFile("testdata/arviz.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"posterior": {"mu": [[1, NaN], [-Infinity, 2e-3]]},
"sample_stats": {"diverging": [[true, false], [false, false]]}}`))
	f.Add([]byte(`{"posterior": {"mu": [[], []], "e": [[], []]}, "coords": {"a": ["x"]}, "dims": {"e": ["a"]},
"posterior_attrs": {"kelvin_layout": "{\"sites\":[{\"name\":\"mu\",\"shape\":[]},` +
		`{\"name\":\"e\",\"shape\":[1]}],\"lengths\":[0,0]}"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		inf, err := Read(bytes.NewReader(text))
		if err != nil || !utf8.Valid(text) { // a CSV file may have names that JSON cannot write
			return
		}
		inf.Coords, inf.Dims = nil, nil // those of another program need not fit together
		if d := inf.Posterior; d != nil && len(d.Sites())+len(d.Stats()) == 0 {
			return
		}
		var b bytes.Buffer
		if err := WriteJSONTo(&b, inf); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b)
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		parts := again.sampled()
		for i, p := range inf.sampled() {
			if *p != nil {
				identical(t, *p, *parts[i])
			}
		}
	})
}
