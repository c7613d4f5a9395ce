package store

import (
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
)

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
	Name  string // of the variable
	Shape []int  // of the values; [] for a number
	// Values are in row-major order.
	Values []float64
}

// attrs are the attributes with what writers add.
func (inf *Inference) attrs() map[string]any {
	all := map[string]any{
		"created_at":                time.Now().UTC().Format(time.RFC3339),
		"inference_library":         "kelvin",
		"inference_library_version": libraryVersion(),
	}
	for k, v := range inf.Attrs {
		all[k] = v
	}
	return all
}

// sampled are the containers in the order of sampledGroups.
func (inf *Inference) sampled() []**draws.Draws {
	return []**draws.Draws{
		&inf.Posterior, &inf.PosteriorPredictive, &inf.LogLikelihood, &inf.Prior, &inf.PriorPredictive, &inf.Warmup,
	}
}

// data are the arrays in the order of dataGroups.
func (inf *Inference) data() []*[]Array { return []*[]Array{&inf.ObservedData, &inf.ConstantData} }
