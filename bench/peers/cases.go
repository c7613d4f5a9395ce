package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// posterior is a posterior as all sides have it.
type posterior struct {
	name   string
	model  ppl.Model
	batch  infer.Batch
	method hmc.NUTS
	names  []string // whose effective sample sizes count
	data   any      // of the peers' programs, as JSON
	stan   string   // its Stan program
	short  string   // its name in the peers' Python; "" where only Stan has it
	// orthogonal is the data of a linear regression whose columns are orthogonal, for Stan to have what Kelvin has.
	orthogonal any
}

// accept is the mean acceptance that all sides adapt to.
func (p posterior) accept() float64 {
	if p.method.TargetAccept > 0 {
		return p.method.TargetAccept
	}
	return 0.8
}

const (
	pimaName      = "Pima"
	schoolsName   = "eight_schools-eight_schools_noncentered"
	influenzaName = "influenza"
)

// stanProgram is the program of a posterior: its file has the last part of its name.
func stanProgram(name string) (string, error) {
	_, program, _ := strings.Cut(name, "-")
	text, err := peer.Programs.ReadFile("stan/" + program + ".stan")
	return string(text), err
}

// choose makes the posteriors of a list separated by commas; "" for all. Without a database there are Pima, eight
// schools and an epidemic of influenza.
func choose(list, database, pimaFile string) ([]posterior, error) {
	var known []string
	for _, e := range posteriors.Registry {
		if database != "" {
			known = append(known, e.Name)
		}
	}
	if database == "" {
		known = append(known, schoolsName)
	}
	known = append(known, pimaName, influenzaName)
	names := known
	if list != "" {
		names = strings.Split(list, ",")
	}
	var out []posterior
	for _, name := range names {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-models: there is no %q among %s", name, strings.Join(known, ", "))
		}
		make := func() (posterior, error) { return ofDatabase(database, name) }
		switch {
		case name == pimaName:
			make = func() (posterior, error) { return ofPima(pimaFile) }
		case name == influenzaName:
			make = influenza
		case database == "":
			make = schools
		}
		p, err := make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func ofDatabase(dir, name string) (posterior, error) {
	db, err := posteriors.Open(dir)
	if err != nil {
		return posterior{}, err
	}
	d, reference, err := db.Read(name)
	if err != nil {
		return posterior{}, err
	}
	i := slices.IndexFunc(posteriors.Registry, func(e posteriors.Entry) bool { return e.Name == name })
	made, err := posteriors.Registry[i].Load(d)
	if err != nil {
		return posterior{}, err
	}
	program, err := stanProgram(name)
	p := posterior{name: name, model: made.Model, batch: made.Batch, method: made.Method, data: d.Values(), stan: program}
	for n := range reference {
		p.names = append(p.names, n)
	}
	slices.Sort(p.names)
	if name == schoolsName {
		p.short = "eight schools"
	}
	if o := made.Orthogonal; o != nil {
		p.orthogonal = map[string]any{"N": len(o.Y), "K": len(o.Back), "q": o.Q, "back": o.Back, "y": o.Y, "scale": o.Scale}
	}
	return p, err
}

// schools is eight schools without a database.
func schools() (posterior, error) {
	m, err := models.EightSchools()
	if err != nil {
		return posterior{}, err
	}
	program, err := stanProgram(schoolsName)
	return posterior{name: schoolsName, model: m.Model, batch: m.Batch, method: hmc.NUTS{TargetAccept: 0.99},
		names: []string{"mu", "tau"}, stan: program, short: "eight schools",
		data: map[string]any{"J": 8, "y": []int{28, 8, -3, 7, -1, 1, 18, 12},
			"sigma": []int{15, 10, 16, 11, 9, 11, 10, 18}}}, err
}

func ofPima(file string) (posterior, error) {
	x, y, err := pima.Read(file)
	if err != nil {
		return posterior{}, err
	}
	m, err := models.LogisticRegression{X: x, Y: y, NoIntercept: true}.Build()
	if err != nil {
		return posterior{}, err
	}
	labels := make([]int, len(y))
	for i, v := range y {
		labels[i] = int(v)
	}
	program, err := peer.Programs.ReadFile("stan/logistic.stan")
	return posterior{name: pimaName, model: m.Model, batch: m.Batch, stan: string(program), short: pimaName,
		names: []string{"w[1]", "w[2]", "w[3]", "w[4]", "w[5]", "w[6]", "w[7]", "w[8]"},
		data:  map[string]any{"N": len(x), "D": len(x[0]), "X": x, "y": labels}}, err
}

// influenza is an epidemic, a model with differential equations: Stan has the same tolerances and limit of steps.
func influenza() (posterior, error) {
	m, err := models.Influenza()
	if err != nil {
		return posterior{}, err
	}
	times, err := torch.ToSlice[float64](m.Batch["times"])
	if err != nil {
		return posterior{}, err
	}
	counts, err := torch.ToSlice[float64](m.Batch["cases"])
	if err != nil {
		return posterior{}, err
	}
	cases := make([]int, len(counts))
	for i, v := range counts {
		cases[i] = int(v)
	}
	program, err := peer.Programs.ReadFile("stan/influenza.stan")
	return posterior{name: influenzaName, model: m.Model, batch: m.Batch, stan: string(program),
		names: []string{"beta", "gamma", "phi_inv"},
		data:  map[string]any{"T": len(times), "N": 763, "times": times, "cases": cases}}, err
}

// leastESS is the least bulk effective sample size of the named elements, for all sides.
func leastESS(draws map[string][][]float64, names []string) (float64, error) {
	least := math.Inf(1)
	for _, name := range names {
		x, ok := draws[name]
		if !ok {
			return 0, fmt.Errorf("its draws have no %s", name)
		}
		v := diag.ESSBulk(x)
		if math.IsNaN(v) {
			return 0, fmt.Errorf("the effective sample size of %s is not a number", name)
		}
		least = min(least, v)
	}
	return least, nil
}
