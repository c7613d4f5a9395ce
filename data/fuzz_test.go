package data_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	m.Run()
}

// Any bytes are a table or an error. A table has columns of one length, numbers that are finite or missing, labels that
// are levels; and its columns make the same table again.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{
		"\ufeffa,b\r\n1,\"x\ny\"\r\n,NA\r\n", "a;b\n1;2\n", "a,a\n1,2\n", "a\n1e309\n", "a,b\n1\n", "a\n\"x\n",
		"a\n0x1p4\n-0\n",
	} {
		f.Add([]byte(text), uint8(0))
	}
	f.Add([]byte("a,b,c\n1,2,3\n4,x,NaN\n"), uint8(7))
	f.Fuzz(func(t *testing.T, text []byte, stated uint8) {
		c := data.CSV{}
		if stated&1 != 0 {
			c.Factors = []string{"a"}
		}
		if stated&2 != 0 {
			c.Levels = map[string][]string{"b": {"x", "2"}}
		}
		if stated&4 != 0 {
			c.Numbers = []string{"c"}
		}
		table, err := c.Read(bytes.NewReader(text))
		if err != nil {
			if e := new(data.Error); errors.As(err, &e) && e.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		var columns []data.Column
		for _, name := range table.Names() {
			column, err := table.Column(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(column.Numbers)+len(column.Labels) != table.Len() {
				t.Fatalf("column %q has %d numbers and %d labels of %d rows", name, len(column.Numbers), len(column.Labels),
					table.Len())
			}
			for _, v := range column.Numbers {
				if math.IsInf(v, 0) {
					t.Fatal("an infinite number")
				}
			}
			columns = append(columns, column)
		}
		again, err := data.NewTable(columns...)
		if err != nil {
			t.Fatal(err)
		}
		if again.String() != table.String() {
			t.Fatalf("%s\n%s", table, again)
		}
		if _, err := table.Missing(); err != nil {
			t.Fatal(err)
		}
	})
}
