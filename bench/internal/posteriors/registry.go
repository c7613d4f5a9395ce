// Package posteriors holds posteriors of posteriordb as models of Kelvin, and reads its data and reference draws.
package posteriors

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// Posterior is a model on its data. Its latent variables and deterministic values are named as in the reference draws.
type Posterior struct {
	Model  ppl.Model
	Batch  infer.Batch
	Method hmc.NUTS // what differs from the defaults, for a reason that stands beside it
	// Orthogonal is how a linear regression was made; nil for other models.
	Orthogonal *Orthogonal
}

// Orthogonal is a linear regression whose coefficients are Back·theta: its chains move in theta, y ~ N(Q theta, sigma).
type Orthogonal struct {
	Q, Back [][]float64
	Y       []float64
	Scale   float64 // of the half-Cauchy prior of sigma; 0 for a flat prior
}

// Entry is a posterior of the database, by its name there. The function makes the posterior from the data; it panics
// with a dataError, which Load returns.
type Entry struct {
	Name string
	make func(d *Data) Posterior
}

// Registry is every posterior that is run. A new one is a function and its name here.
var Registry = []Entry{
	{"arK-arK", arK},
	{"earnings-logearn_interaction", logearnInteraction},
	{"eight_schools-eight_schools_noncentered", eightSchoolsNoncentered},
	{"garch-garch11", garch11},
	{"gp_pois_regr-gp_pois_regr", gpPoisRegr},
	{"hmm_example-hmm_example", hmmExample},
	{"kidiq-kidscore_interaction", kidscoreInteraction},
	{"kidiq-kidscore_momiq", kidscoreMomIQ},
	{"kilpisjarvi_mod-kilpisjarvi", kilpisjarvi},
	{"low_dim_gauss_mix-low_dim_gauss_mix", lowDimGaussMix},
	{"mesquite-logmesquite_logvas", logmesquiteLogvas},
	{"nes2000-nes", nes},
	{"sblrc-blr", blr},
}

// Load makes the posterior; what is wrong with the data is an error.
func (e Entry) Load(d *Data) (p Posterior, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case dataError:
			err = r
		default:
			panic(r)
		}
	}()
	return e.make(d), nil
}

// Compile makes the posterior on its data in the database, its program, and its reference.
func (e Entry) Compile(db Database) (p Posterior, program *ppl.Program, r Reference, err error) {
	d, r, err := db.Read(e.Name)
	if err != nil {
		return p, nil, nil, err
	}
	if p, err = e.Load(d); err != nil {
		return p, nil, nil, err
	}
	program, err = ppl.Compile(p.Model, p.Batch)
	return p, program, r, err
}

// Choose is the part of the Registry with the names in a list separated by commas; all of it for an empty list.
func Choose(list string) ([]Entry, error) {
	if list == "" {
		return Registry, nil
	}
	return command.Choose(list, Registry, func(x Entry) string { return x.Name }, func(name string) error {
		return fmt.Errorf("-models: there is no model for %q; -list names those there are", name)
	})
}
