package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// A picture is a table of images, each magnified.
const (
	columns = 10
	zoom    = 3
	gap     = 2 // pixels between images
)

// pictures draws images from the prior, and images that were held out above what becomes of them on the way through z.
func (v *autoencoder) pictures(w io.Writer, state svi.State, test images) error {
	params, err := state.Params(0)
	if err != nil {
		return err
	}
	net := network(func(name string) torch.Tensor { return params[name] })
	shown := min(2*columns, test.n)
	held, err := test.tensor(0, shown)
	if err != nil {
		return err
	}
	var drawn, back []float32
	err = torch.Do(func(*torch.Scope) error {
		streams := torch.NewStreams(v.seed, 1)
		z := torch.Must(streams.Normal([]int{columns * columns, v.latent}, gotch.Float, torch.CPU))
		z = z.Reshape(columns*columns, v.latent)
		drawn = torch.Must(torch.ToSlice[float32](net.decode(z).Sigmoid()))
		mean, _ := net.encode(held.Get("x"))
		back, err = torch.ToSlice[float32](net.decode(mean).Sigmoid())
		return err
	})
	if err != nil {
		return err
	}
	var pairs []float32 // a row of images, and below it the row of their reconstructions
	for from := 0; from < shown; from += columns {
		to := min(from+columns, shown)
		for _, of := range [][]float32{test.pixels, back} {
			pairs = append(pairs, of[from*side*side:to*side*side]...)
		}
	}
	for name, pixels := range map[string][]float32{"samples.png": drawn, "reconstructions.png": pairs} {
		if err := save(filepath.Join(v.out, name), pixels); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "\npictures in %s: samples.png, reconstructions.png (data above, their means below)\n", v.out)
	return err
}

// save writes images, from 0 (black) to 1 (white), as a table.
func save(path string, pixels []float32) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	n := len(pixels) / (side * side)
	const cell = side*zoom + gap
	img := image.NewGray(image.Rect(0, 0, columns*cell+gap, (n+columns-1)/columns*cell+gap))
	for i := range img.Pix {
		img.Pix[i] = 64
	}
	for i, v := range pixels {
		x, y := i%side, i/side%side
		at := i / (side * side)
		for dx := range zoom {
			for dy := range zoom {
				img.SetGray(at%columns*cell+gap+x*zoom+dx, at/columns*cell+gap+y*zoom+dy, color.Gray{Y: uint8(255*v + 0.5)})
			}
		}
	}
	return atomicfile.Replace(path, func(w io.Writer) error { return png.Encode(w, img) })
}
