package portable

import (
	"os"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.LimitMemory()
	os.Exit(m.Run())
}

// light says whether a plan is evaluated in little time and memory.
func light(p *Plan) bool {
	numbers, work := 0, 0.0
	for _, b := range p.plan.Buffers {
		numbers += b.Len
	}
	for _, part := range [][]ir.Step{p.plan.Prologue, p.plan.Steps} {
		for i := range part {
			w, _ := boundedStep(&part[i])
			work += w
		}
	}
	return numbers < 1<<16 && work < 1<<20
}

// Any bytes in the place of a body are an error, or a model that can be evaluated and that is written alike. The
// checksum is left out, so that the fuzzer gets behind it.
func FuzzBody(f *testing.F) {
	files, err := exports()
	if err != nil || len(files) == 0 {
		f.Fatal("there are no files: ", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[head : len(b)-32])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := readBody(b)
		if err != nil {
			return
		}
		for _, p := range []*Plan{file.Density, file.Named, file.Pointwise} {
			if p == nil || !light(p) {
				continue
			}
			m, err := p.Machine()
			if err != nil {
				continue
			}
			var aux [][]float64
			for _, s := range p.plan.Outputs {
				aux = append(aux, make([]float64, s.Len()))
			}
			x := make([]float64, m.Dim())
			m.Eval(x, 1, make([]float64, m.Dim()), aux)
		}
		for _, rows := range []int{1, 3, 1000} {
			predict(file.Predictive, rows)
			predict(file.Likelihood, rows)
		}
	})
}

// predict draws predictions, where they take little time and memory.
func predict(p *Prediction, rows int) {
	if p == nil {
		return
	}
	q, err := p.At(rows, 3)
	if err != nil || !light(&Plan{plan: q.plan}) {
		return
	}
	data := map[string][]float64{}
	sites, known := q.Inputs()
	for i, s := range sites {
		if !known[i] {
			data[s.Name] = make([]float64, s.Size)
		}
	}
	given := func(_ int, to []float64) {
		for i := range to {
			to[i] = 0.5
		}
	}
	each := func(int, int, [][]float64) error { return nil }
	if err := q.Draw(5, given, 1, 2, data, each); err == nil && q.Keep(5, given, 1, 2) {
		_ = q.DrawKept(5, 1, 2, data, each)
	}
}
