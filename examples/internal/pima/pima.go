// Package pima is the Pima Indians diabetes data, for the examples.
package pima

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/stat"
)

// csvText is the data set (Smith et al. 1988, National Institute of Diabetes and Digestive and Kidney Diseases): 768
// women, 8 measurements, and whether diabetes was diagnosed within five years. The values are those of
// PimaIndiansDiabetes in the R package mlbench.
//
//go:embed pima.csv
var csvText string

// The size of the data.
const (
	Patients = 768
	Features = 8
)

// Read returns the batch of all data, and the names of the features: "x" are the features, of shape [768,
// 8], standardised with the population standard deviation, "diabetes" the diagnoses as 0 and 1, and "y"
// the diagnoses as signs.
func Read() (infer.Batch, []string, error) {
	rows, err := csv.NewReader(strings.NewReader(csvText)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	names, rows := rows[0][:Features], rows[1:]
	if len(rows) != Patients {
		return nil, nil, fmt.Errorf("pima.csv has %d rows, expected %d", len(rows), Patients)
	}
	x, y, labels := make([]float64, Patients*Features), make([]float64, Patients), make([]float64, Patients)
	column := make([]float64, Patients)
	for j := range Features + 1 {
		for i, row := range rows {
			if column[i], err = strconv.ParseFloat(row[j], 64); err != nil {
				return nil, nil, fmt.Errorf("pima.csv, row %d: %w", i+2, err)
			}
		}
		if j == Features {
			for i, label := range column {
				labels[i], y[i] = label, 2*label-1
			}
			break
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		for i, v := range column {
			x[i*Features+j] = (v - mean) / sd
		}
	}
	xt, err := torch.FromSlice(x, Patients, Features)
	if err != nil {
		return nil, nil, err
	}
	yt, err := torch.FromSlice(y)
	if err != nil {
		return nil, nil, err
	}
	lt, err := torch.FromSlice(labels)
	return infer.Batch{"x": xt, "y": yt, "diabetes": lt}, names, err
}
