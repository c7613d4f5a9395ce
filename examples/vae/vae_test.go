package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A short run on rings ends with a bound far above that of pixels without structure: of 784 pixels of which a share f
// is 1 it is 784 H(f), about 320 nats where f is 0.17. The pictures are there.
func TestRings(t *testing.T) {
	o := options{out: t.TempDir(), epochs: 4, batch: 50, hidden: 64, latent: 4, lr: 5e-3, seed: 1}
	var text bytes.Buffer
	require.NoError(t, run(context.Background(), &text, o))
	lines := strings.Split(text.String(), "\n")
	var last string
	for _, line := range lines {
		if f := strings.Fields(line); len(f) == 4 && f[0] == "4" {
			last = f[2]
		}
	}
	require.Regexp(t, `^1?\d\d\.\d\d$`, last, text.String()) // below 200 nats
	for _, name := range []string{"samples.png", "reconstructions.png"} {
		f, err := os.Open(filepath.Join(o.out, name))
		require.NoError(t, err)
		img, err := png.Decode(f)
		require.NoError(t, err)
		require.Equal(t, columns*(side*zoom+gap)+gap, img.Bounds().Dx())
		require.NoError(t, f.Close())
	}
}

func TestFlags(t *testing.T) {
	good := options{out: t.TempDir(), epochs: 1, batch: 50, hidden: 8, latent: 2, lr: 1e-3}
	for word, change := range map[string]func(o *options){
		"epochs is 0":                       func(o *options) { o.epochs = 0 },
		"lr is 0":                           func(o *options) { o.lr = 0 },
		"batch is 5000, and there are 2000": func(o *options) { o.batch = 5000 },
		"train-images":                      func(o *options) { o.data = t.TempDir() },
	} {
		o := good
		change(&o)
		require.ErrorContains(t, run(context.Background(), &bytes.Buffer{}, o), word)
	}
}
