package data_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// From text to numbers, and what a row with an unknown level gives.
func Example() {
	const text = `age,region,income
31,N,2100
45,S,2600
,S,1900
62,N,3900
50,E,3100
28,E,1800
`
	err := func() error {
		table, err := data.CSV{Name: "people.csv"}.Read(strings.NewReader(text))
		if err != nil {
			return err
		}
		fmt.Print(table)
		table, dropped, err := table.DropMissing()
		if err != nil {
			return err
		}
		fmt.Println("dropped:", dropped)

		design, err := data.Spec{
			Terms:   []data.Term{{Column: "age", Scale: 1}, {Column: "region", Contrast: data.Sum}},
			Outcome: data.Term{Column: "income", Scale: 1},
		}.Fit(table)
		if err != nil {
			return err
		}
		frame, err := design.Frame(table)
		if err != nil {
			return err
		}
		fmt.Println(frame.Names)
		fmt.Printf("%.3f -> %.3f\n", frame.X[0], frame.Y[0])

		newcomer, err := data.CSV{Name: "new.csv"}.Read(strings.NewReader("age,region\n40,W\n"))
		if err != nil {
			return err
		}
		_, err = design.Frame(newcomer)
		return err
	}()
	fmt.Println(err)
	// Output:
	// 6 rows
	// age     numbers from 28 to 62, 1 missing
	// region  factor of 3 levels: "E", "N", "S"
	// income  numbers from 1800 to 3900
	// dropped: 1
	// [age region[S.E] region[S.N]]
	// [-0.872 0.000 1.000] -> -0.720
	// data: new.csv, line 2, column "region", value "W": the training data do not have this level: they have "E", "N", "S"
}

// A service reads the design of the training data, and encodes rows that it is sent.
func ExampleDesign_MarshalJSON() {
	err := func() error {
		train, err := data.CSV{Name: "people.csv"}.Read(strings.NewReader("age,region\n31,N\n45,S\n62,N\n50,E\n"))
		if err != nil {
			return err
		}
		learned, err := data.Spec{Terms: []data.Term{{Column: "age", Scale: 1}, {Column: "region"}}}.Fit(train)
		if err != nil {
			return err
		}
		file, err := json.Marshal(learned)
		if err != nil {
			return err
		}

		var design data.Design
		if err := json.Unmarshal(file, &design); err != nil {
			return err
		}
		for _, row := range []string{"40,S", "40,W"} {
			request, err := data.CSV{Name: "request", Factors: []string{"region"}}.Read(strings.NewReader("age,region\n" + row))
			if err != nil {
				return err
			}
			frame, err := design.Frame(request)
			if err != nil {
				return err
			}
			fmt.Println(frame.Names)
			fmt.Printf("%.3f\n", frame.X[0])
		}
		return nil
	}()
	fmt.Println(err)
	// Output:
	// [age region[N] region[S]]
	// [-0.546 0.000 1.000]
	// data: request, line 2, column "region", value "W": the training data do not have this level: they have "E", "N", "S"
}
