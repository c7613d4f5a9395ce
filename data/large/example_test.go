package large_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/data/large"
)

// A file of six rows of two numbers is written, and read in the order of a shuffle.
func Example() {
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "large")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path := filepath.Join(dir, "x.npy")
		w, err := large.Create[float64](path, 2)
		if err != nil {
			return err
		}
		for i := range 6 {
			if err := w.Write(float64(i), float64(i*i)); err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}

		table, err := large.Open(map[string]string{"x": path})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, table.Close()) }()
		fmt.Println(table.Rows(), table.Columns()[0].Type, table.Columns()[0].Shape)
		order, err := large.NewShuffle(table.Rows(), 1, 0)
		if err != nil {
			return err
		}
		rows, sum := []int{}, 0
		for i := range table.Rows() {
			rows = append(rows, order.At(i))
			sum += order.At(i)
		}
		x, err := large.Gather[float64](table, "x", rows)
		if err != nil {
			return err
		}
		fmt.Println(sum, x[0]*x[0] == x[1])
		_, err = large.Gather[float32](table, "x", rows)
		fmt.Println(err != nil)
		return nil
	}()
	fmt.Println(err)
	// Output:
	// 6 float64 [2]
	// 15 true
	// true
	// <nil>
}
