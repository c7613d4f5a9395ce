package draws

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	os.Exit(m.Run())
}

// FuzzLayout makes sites from bytes (rank, then sizes, an error added to size and one to offset) and checks New against
// the rule itself, then the names against the arithmetic of row-major order, and that draws come back in place.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{0, 0, 0, 1, 3, 0, 0, 2, 2, 3, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0})    // a site without elements
	f.Add([]byte{1, 3, 0, 0, 0, 0, 1})    // a gap
	f.Add([]byte{1, 3, 0, 0, 0, 0, 255})  // an overlap
	f.Add([]byte{2, 2, 2, 1, 0})          // a wrong size
	f.Add([]byte{3, 255, 1, 2, 0, 0})     // a negative size
	f.Add([]byte{3, 4, 1, 2, 0, 0, 1, 3}) // three dimensions, and a cut
	f.Fuzz(func(t *testing.T, data []byte) {
		var sites []Site
		valid, dim := true, 0
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			v := int(int8(data[0]))
			data = data[1:]
			return v
		}
		for len(data) > 0 && len(sites) < 20 && dim < 10000 {
			s := Site{Name: fmt.Sprintf("s%d", len(sites)), Offset: dim, Size: 1}
			for range next() & 3 {
				n := next() % 8
				valid = valid && n >= 0
				s.Shape = append(s.Shape, n)
				s.Size *= n
			}
			wrongSize, wrongOffset := next(), next()
			valid = valid && wrongSize == 0 && wrongOffset == 0
			s.Size += wrongSize
			s.Offset += wrongOffset
			sites = append(sites, s)
			dim += s.Size
		}
		d, err := New(sites, []string{"lp"}, 2)
		if (err == nil) != valid {
			t.Fatalf("sites %v: valid is %v, but the error is %v", sites, valid, err)
		}
		if err != nil {
			return
		}
		names := d.Names()
		if len(names) != dim || d.Dim() != dim {
			t.Fatalf("%d names and Dim %d, want %d", len(names), d.Dim(), dim)
		}
		x := make([]float64, 2*dim)
		for i := range x {
			x[i] = float64(i)
		}
		if err := d.Append(x, []float64{-1, -2}); err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			values, err := d.Values(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			for e, v := range values[1][0] {
				if want := float64(dim + s.Offset + e); v != want {
					t.Fatalf("%s element %d is %v, want %v", s.Name, e, v, want)
				}
				if want := s.Name + rowMajor(s.Shape, e); names[s.Offset+e] != want {
					t.Fatalf("name %q, want %q", names[s.Offset+e], want)
				}
			}
		}
	})
}

// rowMajor writes the index of flat element e by division, where Names counts up.
func rowMajor(shape []int, e int) string {
	if len(shape) == 0 {
		return ""
	}
	index := make([]string, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		index[k] = fmt.Sprint(e % shape[k])
		e /= shape[k]
	}
	return "[" + strings.Join(index, ",") + "]"
}
