// Package digits is a set of images of handwritten digits, for the examples.
package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// compressed is the test part of the Optical Recognition of Handwritten Digits data of the UCI Machine Learning
// Repository (Alpaydin and Kaynak 1998, https://doi.org/10.24432/C50P49), used under the licence CC BY 4.0: scanned
// digits of 13 writers, each reduced to 8 by 8 numbers of dark pixels from 0 to 16. A row is the 64 numbers of an
// image, from its top left corner, and its digit.
//
//go:embed digits.csv.gz
var compressed []byte

// The size of the data.
const (
	Images  = 1797
	Pixels  = 64 // of 8 by 8
	Classes = 10
)

// Data are some of the images.
type Data struct {
	Pixels []float64 // of one image after the other, [n · 64], from 0 (white) to 1
	Labels []int     // the digits, [n]
}

// Len is the number of images.
func (d Data) Len() int { return len(d.Labels) }

// Read is all images in the order of the source, which goes writer by writer.
func Read() (Data, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return Data{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	rows, err := csv.NewReader(unpacked).ReadAll()
	if err != nil {
		return Data{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	if len(rows) != Images || len(rows[0]) != Pixels+1 {
		return Data{}, fmt.Errorf("digits.csv.gz has %d rows of %d numbers, expected %d of %d", len(rows), len(rows[0]),
			Images, Pixels+1)
	}
	d := Data{Pixels: make([]float64, 0, Images*Pixels), Labels: make([]int, 0, Images)}
	for i, row := range rows {
		for j, text := range row {
			v, err := strconv.Atoi(text)
			if err != nil {
				return Data{}, fmt.Errorf("digits.csv.gz, row %d: %w", i+1, err)
			}
			if j < Pixels {
				d.Pixels = append(d.Pixels, float64(v)/16)
			} else {
				d.Labels = append(d.Labels, v)
			}
		}
	}
	return d, nil
}

// Split reads the images in an order that is always the same random one, so that all writers are on both sides, and
// returns the first train of them and the others.
func Split(train int) (first, rest Data, err error) {
	if train < 1 || train >= Images {
		return first, rest, fmt.Errorf("digits: %d images to train with, want 1 to %d", train, Images-1)
	}
	all, err := Read()
	if err != nil {
		return first, rest, err
	}
	for place, i := range rand.New(rand.NewPCG(1, 0)).Perm(Images) {
		part := &first
		if place >= train {
			part = &rest
		}
		part.Pixels = append(part.Pixels, all.Pixels[i*Pixels:(i+1)*Pixels]...)
		part.Labels = append(part.Labels, all.Labels[i])
	}
	return first, rest, nil
}
