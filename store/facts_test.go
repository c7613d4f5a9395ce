package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/require"
)

// What draws say of their run, and the log likelihood of their observations, come back from every format.
func TestRoundTripFacts(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "mu", []int{}, "w", []int{2}), nutsStats, true, 5, 4)
	d.SetAttr(draws.AttrMethod, "hmc.NUTS = x\n\"quoted\"")
	d.SetAttr(draws.AttrTemperature, "0.25")
	d.AddNote(draws.Note{Kind: "not_converged", Serious: true, Text: "a = b", Advice: "raise\nSteps"})
	inf := &Inference{
		Posterior: d, LogLikelihood: filled(t, placedSites(t, "y", []int{3}), nil, true, 5, 4),
		ObservedData: []Array{{Name: "y", Shape: []int{3}, Values: []float64{1, 2, 3}}},
		Coords:       map[string][]any{"school": {"A", "B"}}, Dims: map[string][]string{"w": {"school"}},
	}
	for format, write := range formats {
		t.Run(format, func(t *testing.T) {
			path, err := write(t.TempDir(), inf)
			require.NoError(t, err)
			got, err := Open(path)
			require.NoError(t, err)
			require.Empty(t, got.Notes)
			identical(t, d, got.Posterior)
			require.Equal(t, d.Attrs(), got.Posterior.Attrs())
			require.Equal(t, d.Notes(), got.Posterior.Notes())
			identical(t, inf.LogLikelihood, got.LogLikelihood)
			require.Equal(t, inf.ObservedData, got.ObservedData)
			require.Equal(t, inf.Coords, got.Coords)
			require.Equal(t, inf.Dims, got.Dims)
			for _, key := range []string{"kelvin_attrs", "kelvin_notes", "kelvin_layout", "kelvin_csv"} {
				require.NotContains(t, got.Attrs, key)
			}
		})
	}
}

// The groups beside CSV files are those of these files: others are left out with a note, and removed by the next write.
func TestGroupsBesideCSV(t *testing.T) {
	noSync(t)
	base := filepath.Join(t.TempDir(), "run")
	sites := placedSites(t, "mu", []int{})
	d := filled(t, sites, nutsStats, true, 5, 5)
	inf := &Inference{Posterior: d, LogLikelihood: filled(t, placedSites(t, "y", []int{2}), nil, true, 5,
		5)}
	_, err := WriteCSV(base, inf, CSVOptions{})
	require.NoError(t, err)
	got, err := Open(base + "_1.csv") // one chain of two
	require.NoError(t, err)
	require.Len(t, got.Notes, 1)
	require.Contains(t, got.Notes[0], "it belongs to other CSV files")
	require.Nil(t, got.LogLikelihood)

	old, err := os.ReadFile(base + ".groups.json")
	require.NoError(t, err)
	half, err := d.Slice(0, 3)
	require.NoError(t, err)
	_, err = WriteCSV(base, &Inference{Posterior: half}, CSVOptions{})
	require.NoError(t, err)
	require.NoFileExists(t, base+".groups.json")
	require.NoError(t, os.WriteFile(base+".groups.json", old, 0o600))
	got, err = Open(base + "_*.csv")
	require.NoError(t, err)
	require.Len(t, got.Notes, 1)
	require.Nil(t, got.LogLikelihood)
	identical(t, half, got.Posterior)
}

// A sink keeps the attributes and notes of the last block.
func TestSinksKeepFacts(t *testing.T) {
	noSync(t)
	d := filled(t, placedSites(t, "mu", []int{}), nutsStats, true, 6, 6)
	dir := t.TempDir()
	csv, zarr := &CSVSink{Base: filepath.Join(dir, "run")}, &ZarrSink{Path: filepath.Join(dir, "run.zarr")}
	for from := 0; from < 6; from += 3 {
		block, err := d.Slice(from, from+3)
		require.NoError(t, err)
		block.SetAttr(draws.AttrMethod, "hmc.NUTS")
		if from > 0 {
			block.AddNote(draws.Note{Kind: "slow", Text: "slow"})
		}
		require.NoError(t, csv.Save("run", []int{from, from}, block))
		require.NoError(t, zarr.Save("run", []int{from, from}, block))
	}
	require.NoError(t, csv.Close())
	require.NoError(t, zarr.Close())
	for _, path := range []string{csv.Base + "_*.csv", zarr.Path} {
		inf, err := Open(path)
		require.NoError(t, err)
		identical(t, d, inf.Posterior)
		require.Equal(t, map[string]string{"method": "hmc.NUTS"}, inf.Posterior.Attrs())
		require.Equal(t, []draws.Note{{Kind: "slow", Text: "slow"}}, inf.Posterior.Notes())
	}
}
