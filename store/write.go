package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// errNoInference is the error of writing nil.
var errNoInference = failf(ErrRange, "write: there is no Inference, it is nil")

// CSVOptions are what CSV files say about their run, and how they are written. The zero value has CmdStan's defaults.
type CSVOptions struct {
	// Model is the name of the model; empty is "model".
	Model string
	// Seed is the seed of the run; 0 is what the draws say of it. Where they do not, the files have none.
	Seed uint64
	// Warmup and Draws are the numbers of iterations that were asked for; 0 is 1000. Thin keeps every Thin-th; 0 is 1.
	Warmup, Draws, Thin int
	// TargetAccept is the acceptance that adaptation aimed at; 0 is 0.8. MaxTreeDepth is the limit; 0 is 10.
	TargetAccept float64
	MaxTreeDepth int
	// Start is when the run began; the zero time is left out.
	Start time.Time
	// FlushEvery is after how many draws a sink hands them to the operating system, so that they outlive the program; 0
	// is 100. Each block of draws is flushed anyway, and waited for.
	FlushEvery int
}

// head is what files of draws say.
func (o CSVOptions) head(d *draws.Draws) csvHead {
	h := csvHead{CSVOptions: o, NoSeed: o.Seed == 0}
	if h.NoSeed && d != nil {
		seed, err := strconv.ParseUint(d.Attrs()["seed"], 10, 64)
		h.Seed, h.NoSeed = seed, err != nil
	}
	return h
}

// WriteCSV writes the posterior, and the warm-up if there is one, as base_1.csv, base_2.csv, ... in the form of
// CmdStan, and returns the paths. Files of these names are replaced, each in one move. Whether and how many
// draws of the warm-up there are is set from inf; files of hmc have an adaptation block with the last step size
// and the unit metric.
//
// CSV has no place for other groups: log likelihood, predictions, data, labels. They go into base.groups.json beside
// the files, InferenceData that ArviZ's from_json reads; [Open] of the CSV files reads it too. Without other groups
// there is no such file, and an old one is removed.
func WriteCSV(base string, inf *Inference, opt CSVOptions) ([]string, error) {
	if inf == nil {
		return nil, errNoInference
	}
	paths, digests, err := writeCSVFiles(base, inf.Posterior, inf.Warmup, opt.head(inf.Posterior))
	if err != nil {
		return paths, err
	}
	others := *inf
	others.Posterior, others.Warmup = nil, nil
	groups, err := others.groups(anyName)
	if err != nil {
		return paths, err
	}
	if len(groups)+len(inf.Coords)+len(inf.Dims) == 0 {
		if err := os.Remove(base + besideCSV); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return paths, during("write CSV", err)
		}
		return paths, nil
	}
	// The names of the posterior's dimensions have no group to stand in.
	of := make([]any, len(digests))
	for i, d := range digests {
		of[i] = d
	}
	others.Attrs = map[string]any{digestsKey: of}
	for key, value := range inf.Attrs {
		others.Attrs[key] = value
	}
	return paths, WriteJSON(base+besideCSV, &others)
}

// WriteJSON writes InferenceData as ArviZ's from_json reads it, in one move: a file of this name is replaced when the
// new one is complete. Groups are objects of variables, lists nested as [chain][draw][shape...]; NaN and infinities are
// written as NaN, Infinity and -Infinity, which Python reads. Chains that are shorter than the longest are filled with
// NaN, and their lengths are in an attribute that [Open] reads. The last key is a digest of the file, which [Open]
// compares. The file is written as it is made, so it may be larger than memory.
//
// An [ErrLayout] says what does not fit: statistics in a group that has none, dimensions of several sizes, an attribute
// that JSON cannot hold.
func WriteJSON(path string, inf *Inference) error {
	return during("write JSON", atomicfile.Replace(path, func(w io.Writer) error { return WriteJSONTo(w, inf) }))
}

// WriteJSONTo is [WriteJSON] to a writer.
func WriteJSONTo(to io.Writer, inf *Inference) error {
	if inf == nil {
		return errNoInference
	}
	if to == nil {
		return failf(ErrRange, "write JSON: the writer is nil")
	}
	groups, err := inf.groups(anyName)
	if err != nil {
		return err
	}
	return writeInferenceData(to, groups, inf.attrs(), inf.Coords, inf.Dims)
}

// ZarrOptions say how a Zarr store is written, and what it says about its run.
type ZarrOptions struct {
	// Chunk is the number of draws in a chunk; 0 is 1000. A chunk has the draws of one chain and of one variable.
	Chunk int
	// Zlib packs the chunks with zlib at this level, from 1 (fast) to 9. 0 is zlib's level 0: nothing is packed, but each
	// chunk has a checksum, which every reader of Zarr compares. -1 leaves the chunks plain, without a checksum.
	Zlib int
	// FlushEvery is after how many draws of a chain a sink flushes; 0 is Chunk. Each block of draws is flushed anyway.
	FlushEvery int
	// Warmup makes a sink write the groups of the warm-up: warmup_posterior and warmup_sample_stats.
	Warmup bool
	// Coords, Dims and Attrs are as in [Inference]. [WriteZarr] takes those of the Inference, and these are ignored.
	Coords map[string][]any
	Dims   map[string][]string
	Attrs  map[string]any
}

// WriteZarr writes a Zarr version 2 store that xarray (open_zarr with group="posterior") and ArviZ (from_zarr) read:
// the groups of ArviZ's InferenceData, arrays of little-endian float64 of the shape [chain][draw][shape...] in chunks
// of one chain, _ARRAY_DIMENSIONS and labels for xarray, and consolidated metadata. Divergences are booleans, tree
// depths and leapfrog steps are integers if all are whole. Shorter chains are filled with NaN, and their lengths are in
// an attribute that [Open] reads. Characters that a file cannot have in its name become _ in names of arrays.
//
// The store appears in one move when it is complete. An [ErrExists] says that path is there already.
func WriteZarr(path string, inf *Inference, opt ZarrOptions) error {
	if inf == nil {
		return errNoInference
	}
	groups, err := inf.groups(fileName)
	if err != nil {
		return err
	}
	opt.Coords = inf.Coords
	err = writeZarr(path, groups, inf.attrs(), opt)
	var e *fs.PathError
	if errors.As(err, &e) && e.Path == path && errors.Is(err, fs.ErrExist) {
		return failf(ErrExists, "write Zarr: %s exists already", path)
	}
	return during("write Zarr", err)
}
