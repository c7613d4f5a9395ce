package store

import (
	"errors"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
)

// Errors of this package wrap one of these, or an error of the system.
var (
	// ErrFormat is wrapped by the error of a file that is not what its format asks for, or is damaged.
	ErrFormat = content.ErrFormat
	// ErrUnsupported is wrapped by the error of a file that is right, but uses a part of its format that Kelvin does not
	// read, such as a compressor or a type of numbers.
	ErrUnsupported = content.ErrUnsupported
	// ErrLayout is wrapped by the error of sites, statistics or chains that do not fit together, or not into the file.
	ErrLayout = content.ErrLayout
	// ErrExists is wrapped by the error of a file or directory that is there already and will not be overwritten.
	ErrExists = content.ErrExists
	// ErrRange is wrapped by the error of an argument outside its range.
	ErrRange = content.ErrRange
	// ErrLimit is wrapped by the error of a file that asks for more than its reader's [Limits].
	ErrLimit = content.ErrLimit
)

// ParseError says where a file is wrong. It wraps [ErrFormat] or what else was wrong, such as a number.
type ParseError struct {
	// File is the path as given; it is empty where a reader was given.
	File string
	// Line counts from 1. Column counts from 1 too: values in a CSV file, bytes in JSON. 0 is the whole line or file.
	Line, Column int
	// What is the column's name in a CSV file, or the place in JSON such as posterior.theta; it may be empty.
	What string
	Err  error
}

// Error is "store: FILE: line 3, column 2 (theta.1): what is wrong".
func (e *ParseError) Error() string { return (*content.ParseError)(e).Error() }

// Unwrap is Err.
func (e *ParseError) Unwrap() error { return e.Err }

// public makes the errors of readers those of this package.
func public(err error) error {
	var e *content.ParseError
	if errors.As(err, &e) {
		return (*ParseError)(e)
	}
	return err
}

// Inference is what a run leaves: the draws and what belongs to them. It has the groups of ArviZ's InferenceData; a
// group that is not there is nil.
type Inference struct {
	// Posterior has the draws after warm-up, with the statistics of the sampler; nil where a file has none.
	Posterior *draws.Draws
	// Warmup has the draws of the warm-up. Its sites are those of Posterior.
	Warmup *draws.Draws
	// LogLikelihood has a site for each observed variable: the log density of each observation in each draw.
	LogLikelihood *draws.Draws
	// PosteriorPredictive and PriorPredictive have a site for each observed variable, Prior one for each parameter.
	PosteriorPredictive, Prior, PriorPredictive *draws.Draws
	// ObservedData are the data that the model is conditioned on, ConstantData the others, such as covariates.
	ObservedData, ConstantData []Array

	// Coords are the labels of named dimensions: all strings, or all numbers (float64, or int and int64, which come
	// back as float64). Dims are the names of a variable's dimensions, for any group; variables without names have none.
	Coords map[string][]any
	Dims   map[string][]string

	// Attrs are facts about the run. Writers add created_at, inference_library and inference_library_version where they
	// are missing; readers of CSV files give model_name, seed, thin, step_size and others. Values are strings, numbers,
	// booleans, or slices and maps of these. Numbers come back as float64. What the draws say of themselves by
	// [draws.Draws.Attrs] and [draws.Draws.Notes] is stored with them and needs no place here.
	Attrs map[string]any

	// Notes say what a reader has left out or found missing: an incomplete last line, chunks that are not there, a group
	// that Kelvin has no place for. Writers skip them.
	Notes []string
}

// Array is a variable without chains and draws.
type Array struct {
	Name  string  // of the variable
	Shape []int64 // of the values; [] for a number
	// Values are in row-major order.
	Values []float64
}

// attrs are the attributes with what writers add.
func (inf *Inference) attrs() map[string]any {
	all := map[string]any{
		"created_at":                time.Now().UTC().Format(time.RFC3339),
		"inference_library":         "kelvin",
		"inference_library_version": content.LibraryVersion(),
	}
	for k, v := range inf.Attrs {
		all[k] = v
	}
	return all
}

// sampled are the containers in the order of [content.Sampled].
func (inf *Inference) sampled() []**draws.Draws {
	return []**draws.Draws{
		&inf.Posterior, &inf.PosteriorPredictive, &inf.LogLikelihood, &inf.Prior, &inf.PriorPredictive, &inf.Warmup,
	}
}

// data are the arrays in the order of [content.Data].
func (inf *Inference) data() []*[]Array { return []*[]Array{&inf.ObservedData, &inf.ConstantData} }
