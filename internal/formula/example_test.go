package formula_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
)

func Example() {
	train, err := data.NewTable(
		data.Column{Name: "recall", Numbers: []float64{4, 6, 5, 9, 7, 8}},
		data.Column{Name: "age", Numbers: []float64{31, 25, 40, 22, 35, 28}},
		data.Column{Name: "drug", Labels: []string{"none", "low", "low", "none", "low", "none"},
			Levels: []string{"none", "low"}},
		data.Column{Name: "clinic", Labels: []string{"Bonn", "Bonn", "Kiel", "Kiel", "Ulm", "Ulm"}})
	if err != nil {
		panic(err)
	}
	f, err := formula.Parse("recall ~ center(age)*drug + (1 | clinic)")
	if err != nil {
		panic(err)
	}
	design, err := f.Fit(train, formula.Options{})
	if err != nil {
		panic(err)
	}
	rows, err := design.Rows(train)
	if err != nil {
		panic(err)
	}
	fmt.Println(design.Names())
	fmt.Printf("%.2f\n", rows.X[3:6])
	fmt.Println(design.Groups()[0].Levels, rows.Groups[0].Index)
	_, err = formula.Parse("recall ~ age * 2")
	fmt.Println(err)
	// Output:
	// [center(age) drug[low] center(age):drug[low]]
	// [-5.17 1.00 -5.17]
	// [Bonn Kiel Ulm] [0 0 1 1 2 2]
	// formula, column 16: a number is no factor of a product: arithmetic stands in I()
	//   recall ~ age * 2
	//                  ^
}
