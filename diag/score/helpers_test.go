package score

import (
	"errors"
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

var nan, inf = math.NaN(), math.Inf(1)

var (
	filled  = testkit.Filled
	source  = testkit.Source
	normals = testkit.Normals
	near    = testkit.Near
	meanSE  = testkit.MeanSE
)

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// softmax are the probabilities of classes with the logits z.
func softmax(z []float64) []float64 { return sample.Mapped([][]float64{logSoftmax(z)}, math.Exp)[0] }
