package large_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	m.Run()
}

// Any bytes are a table whose first and last rows can be read, or an error that names the file.
func FuzzOpen(f *testing.F) {
	eight := make([]byte, 8)
	for _, content := range [][]byte{
		npy(1, dict("<f8", "(1,)"), eight), npy(2, dict("<f4", "(2, 1)"), eight), npy(3, dict("|u1", "(2, 2, 2)"), eight),
		npy(1, dict("<i8", "(1152921504606846976, 8)"), eight), npy(1, dict("<i4", "(2L,)"), eight),
		npy(1, "{'descr': [('a', '<f8')], 'fortran_order': True, 'shape': ()}", eight),
		[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
	} {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		table, err := large.Open(map[string]string{"x": path})
		if err != nil {
			if e := new(data.Error); !errors.As(err, &e) || e.Source != path || e.Problem == "" {
				t.Fatalf("an error without the file: %v", err)
			}
			return
		}
		defer func() { _ = table.Close() }()
		c, last := table.Columns()[0], table.Rows()-1
		if c.Bytes < 1 || last < 0 || int64(last) > math.MaxInt64/c.Bytes || int64(last+1)*c.Bytes > int64(len(content)) {
			t.Fatalf("%d rows of %d bytes in %d", last+1, c.Bytes, len(content))
		}
		if _, err := table.Fingerprint(); err != nil {
			t.Fatal(err)
		}
		n := 0
		switch rows := []int{0, last}; c.Type {
		case "float64":
			n = read[float64](t, table, rows) * 8
		case "float32":
			n = read[float32](t, table, rows) * 4
		case "int64":
			n = read[int64](t, table, rows) * 8
		case "int32":
			n = read[int32](t, table, rows) * 4
		case "uint8":
			n = read[uint8](t, table, rows)
		default:
			t.Fatal(c.Type)
		}
		if int64(n) != 2*c.Bytes {
			t.Fatalf("%d bytes of 2 rows of %d", n, c.Bytes)
		}
	})
}

func read[T large.Value](t *testing.T, table *large.Table, rows []int) int {
	values, err := large.Gather[T](table, "x", rows)
	if err != nil {
		t.Fatal(err)
	}
	return len(values)
}
