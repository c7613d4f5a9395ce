package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/cifar"
	"github.com/stretchr/testify/require"
)

// Runs on images of one folder are not those of another of the same size with other labels, with -tune and without.
// The first run claims the folder of the results and stops before its first update.
func TestRunsOnOtherData(t *testing.T) {
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	folder := func(train, test func(label int) int) string {
		dir := t.TempDir()
		for name, change := range map[string]func(int) int{"data_batch_1.bin": train, "test_batch.bin": test} {
			d := cifar.Synthetic(30, cifar.Side, 1)
			for i, label := range d.Labels {
				d.Labels[i] = change(label)
			}
			require.NoError(t, cifar.Write(filepath.Join(dir, name), d))
		}
		return dir
	}
	same := func(label int) int { return label }
	other := func(label int) int { return (label + 1) % cifar.Classes }
	for _, tuned := range []bool{false, true} {
		o := testOptions(t.TempDir())
		o.settings.Images, o.settings.Tests, o.tune, o.rates, o.momenta = 30, 30, tuned, "0.1", "0.9"
		on := func(data string) error {
			o.data = data
			return run(stopped, io.Discard, o)
		}
		require.ErrorIs(t, on(folder(same, same)), context.Canceled)
		require.ErrorIs(t, on(folder(same, same)), context.Canceled, "the same images elsewhere")
		require.ErrorContains(t, on(folder(other, same)), "_sha256 is ")
		err := on(folder(same, other))
		if tuned { // the test images are not looked at
			require.ErrorIs(t, err, context.Canceled)
		} else {
			require.ErrorContains(t, err, "test_sha256 is ")
		}
		require.ErrorContains(t, on(""), "holds a sweep with other settings")
	}
}
