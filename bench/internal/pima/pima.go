// Package pima reads the Pima Indians diabetes data for the benchmarks.
package pima

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// File is where the data are, from the root of the repository.
const File = "examples/internal/pima/pima.csv"

// Read reads a table with a line of names and the label, 0 or 1, in its last column. It returns the rows of features,
// standardised with the population standard deviation, and the labels.
func Read(path string) (x [][]float64, y []float64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("run from the repository's root, or name the file with -pima: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) < 2 {
		return nil, nil, fmt.Errorf("%s has no data", path)
	}
	d := len(lines[0]) - 1
	columns := make([][]float64, d+1)
	for _, line := range lines[1:] {
		for j, text := range line {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			columns[j] = append(columns[j], v)
		}
	}
	x = make([][]float64, len(lines)-1)
	for j := range d {
		mean, sd := stat.PopMeanStdDev(columns[j], nil)
		for i, v := range columns[j] {
			x[i] = append(x[i], (v-mean)/sd)
		}
	}
	return x, columns[d], nil
}
