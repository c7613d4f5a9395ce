package main

import (
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
)

const (
	patients = pima.Patients
	features = pima.Features
)

// readPima returns the batch of all data and the names of the features: see [pima.Read].
func readPima() (infer.Batch, []string, error) { return pima.Read() }
