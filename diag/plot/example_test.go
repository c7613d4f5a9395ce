package plot_test

import (
	"bytes"
	"fmt"
	"image/png"

	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/diag/score"
)

func ExampleReliability() {
	r, err := score.Calibration([]float64{0.6, 0.7, 0.9, 0.95}, []bool{true, false, true, true}, score.Binning{Bins: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	var picture bytes.Buffer // a file, or the response of a server
	if err := plot.Reliability(&picture, r, plot.Options{Title: "ensemble"}); err != nil {
		fmt.Println(err)
		return
	}
	img, err := png.Decode(&picture)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(img.Bounds().Size())
	// Output:
	// (480,480)
}
