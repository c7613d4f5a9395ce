package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// All calculations give finite numbers, the same twice in main memory; on a GPU, where there is one, the same to the
// tolerance of each.
func TestAgreement(t *testing.T) {
	device := torch.CPU
	if gpu, err := torch.CUDA(0); err == nil {
		device = gpu
	}
	list, err := agreements()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, a := range list {
		assert.False(t, names[a.name], a.name)
		names[a.name] = true
		f := a.compare(device)
		assert.Empty(t, f.Error, a.name)
		assert.Positive(t, f.Numbers, a.name)
		if device == torch.CPU {
			assert.Zero(t, f.Difference, a.name)
		}
	}
}

// A device with other numbers is told from one that agrees, and so is one that fails.
func TestDisagreement(t *testing.T) {
	elsewhere := gotch.CudaBuilder(7)
	of := func(here, there []float64, err error) found {
		return agreement{"a", 0.01, func(d gotch.Device) ([]float64, error) {
			if d == torch.CPU {
				return here, nil
			}
			return there, err
		}}.compare(elsewhere)
	}
	nan := []float64{1, 0}
	nan[1] /= nan[1]
	assert.Empty(t, of([]float64{1, 200}, []float64{1.009, 201}, nil).Error)
	assert.Contains(t, of([]float64{1, 2}, []float64{1, 2.1}, nil).Error, "number 1 is 2 in main memory and 2.1")
	assert.Contains(t, of([]float64{1, 2}, nan, nil).Error, "number 1 is 2 in main memory and NaN")
	assert.Contains(t, of([]float64{1, 2}, []float64{1}, nil).Error, "2 numbers in main memory, 1 on the device")
	assert.Contains(t, of(nil, nil, nil).Error, "0 numbers in main memory")
	assert.Equal(t, "on the device: no room", of([]float64{1}, nil, errors.New("no room")).Error)
}

// The command with main memory in the place of a GPU, and chains few; without a GPU it says that nothing was run.
func TestCommand(t *testing.T) {
	var out bytes.Buffer
	file := filepath.Join("..", "..", "examples", "internal", "pima", "pima.csv")
	require.NoError(t, run(context.Background(), []string{"-device", "cpu", "-seconds", "0.2", "-chains", "8", "-part",
		"chains", "-pima", file}, &out))
	assert.Contains(t, out.String(), "Device: main memory, in the place of a GPU.")
	assert.Regexp(t, `eight_schools +8 +[0-9.e+]+ `, out.String())
	assert.Regexp(t, `pima +8 +[0-9.e+]+ `, out.String())

	out.Reset()
	require.NoError(t, run(context.Background(), []string{"-device", "cpu", "-part", "pytorch", "-python",
		filepath.Join(t.TempDir(), "python")}, &out))
	assert.Contains(t, out.String(), "not run: ")

	require.ErrorContains(t, run(context.Background(), []string{"-device", "tpu"}, &out), `-device "tpu"`)
	require.ErrorContains(t, run(context.Background(), []string{"-seconds", "0"}, &out), "-seconds and -chains")
	if _, err := torch.CUDA(0); err != nil {
		require.ErrorContains(t, run(context.Background(), nil, &out), "no GPU, so nothing was run")
	}
}

// PyTorch's log posterior and gradient are Kelvin's, and both sides make steps. KELVIN_PYTHON names a Python with
// PyTorch.
func TestPyTorch(t *testing.T) {
	python := os.Getenv("KELVIN_PYTHON")
	if python == "" {
		t.Skip("KELVIN_PYTHON names no Python with PyTorch")
	}
	small := architectures[1]
	small.batch = 4
	row := stepRow{}
	require.NoError(t, row.measure(context.Background(), small, options{device: torch.CPU, python: python, seconds: 1}))
	assert.Less(t, row.Difference, difference)
	assert.Positive(t, row.Ratio)
}
