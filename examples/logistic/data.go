package main

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

// pima is the Pima Indians diabetes data set (Smith et al. 1988, National Institute of Diabetes and Digestive and Kidney
// Diseases): 768 women, 8 measurements, and whether diabetes was diagnosed within five years. The values are those of
// PimaIndiansDiabetes in the R package mlbench.
//
//go:embed pima.csv
var pima string

const (
	patients = 768
	features = 8
)

// readPima returns the batch of all data, the features standardised with the population standard deviation and the
// diagnoses as 0 and 1 ("diabetes") and as signs ("y"), and the names of the features.
func readPima() (infer.Batch, []string, error) {
	rows, err := csv.NewReader(strings.NewReader(pima)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	names, rows := rows[0][:features], rows[1:]
	if len(rows) != patients {
		return nil, nil, fmt.Errorf("pima.csv has %d rows, expected %d", len(rows), patients)
	}
	x, y, labels := make([]float64, patients*features), make([]float64, patients), make([]float64, patients)
	column := make([]float64, patients)
	for j := range features + 1 {
		for i, row := range rows {
			if column[i], err = strconv.ParseFloat(row[j], 64); err != nil {
				return nil, nil, fmt.Errorf("pima.csv, row %d: %w", i+2, err)
			}
		}
		if j == features {
			for i, label := range column {
				labels[i], y[i] = label, 2*label-1
			}
			break
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		for i, v := range column {
			x[i*features+j] = (v - mean) / sd
		}
	}
	xt, err := torch.FromSlice(x, patients, features)
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
