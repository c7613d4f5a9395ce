package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Radon is a regression of N homes in J counties whose intercepts vary, with one feature of the home and
// one of the county:
//
//	intercept, uranium_slope, floor_slope ~ N(0, PriorScale²), tau, sigma ~ HalfNormal(SpreadScale)
//	level_j ~ N(intercept + uranium_slope·Uranium_j, tau²)
//	y_i ~ N(level_{County_i} + floor_slope·Floor_i, sigma²)
//
// The latent variables are "intercept", "uranium_slope", "floor_slope", "tau" and "sigma", of shape [], and "level",
// [J], of the counties: with Centred itself, else as "level_decentred", standard normal numbers z with level =
// intercept + uranium_slope·Uranium + tau·z, which ppl.Reparam makes of it. The batch has "y" and "floor", [N], and
// "county", [N] of int64; it can be split into minibatches. (Gelman and Hill 2007, Data Analysis Using Regression and
// Multilevel/Hierarchical Models, chapter 12; Gelman 2006, Technometrics 48, 432–435.)
//
// Centred, the density grows without bound as tau goes to 0; there is no mode.
type Radon struct {
	Y           []float64 // log radon of N homes
	Floor       []float64 // of each home; 0 where it was measured in the basement and 1 on the first floor
	County      []int     // of each home, from 0 to J−1
	Uranium     []float64 // log uranium of J counties
	PriorScale  float64   // standard deviation of the coefficients; 0 means 10
	SpreadScale float64   // scale of the priors of tau and sigma; 0 means 1
	Centred     bool      // samples the counties' intercepts themselves
}

// Build checks the data and scales; an error names the field.
func (c Radon) Build() (Model, error) {
	f := &fields{config: "models.Radon"}
	homes, counties := len(c.Y), len(c.Uranium)
	y := f.vector("Y", c.Y, -1, finite, "finite")
	floors := f.vector("Floor", c.Floor, homes, finite, "finite")
	uranium := f.vector("Uranium", c.Uranium, -1, finite, "finite")
	county := f.indices("County", c.County, homes, counties)
	coefficients := f.scale("PriorScale", c.PriorScale, 10)
	spreads := f.scale("SpreadScale", c.SpreadScale, 1)
	var model ppl.Model = func(m *ppl.Ctx) {
		intercept := m.Sample("intercept", dist.Normal(0, coefficients))
		slope := m.Sample("uranium_slope", dist.Normal(0, coefficients))
		floor := m.Sample("floor_slope", dist.Normal(0, coefficients))
		tau := m.Sample("tau", dist.HalfNormal(spreads))
		sigma := m.Sample("sigma", dist.HalfNormal(spreads))
		var levels torch.Tensor
		m.Plate("counties", counties, func(m *ppl.Ctx) {
			levels = m.Sample("level", dist.Normal(slope.Mul(uranium).Add(intercept), tau))
		})
		m.Plate("homes", homes, func(m *ppl.Ctx) {
			mean := levels.IndexSelect(0, m.Data("county")).Add(m.Data("floor").Mul(floor))
			m.Observe("y", dist.Normal(mean, sigma), m.Data("y"))
		})
	}
	if !c.Centred {
		model = ppl.Reparam(model, map[string]ppl.Reparameterisation{"level": ppl.NonCentred})
	}
	m, err := f.model("radon", model, infer.Batch{"y": y, "floor": floors, "county": county})
	m.Modeless = c.Centred
	return m, err
}

// indices is n whole numbers from 0 to below as a tensor of int64.
func (f *fields) indices(field string, v []int, n, below int) torch.Tensor {
	if len(v) != n {
		f.fail(field, len(v), "there must be %d numbers, as many as the other data", n)
	}
	index := make([]int, len(v))
	for i, x := range v {
		if x < 0 || x >= below {
			f.fail(field, x, "every number must be from 0 to %d, the last of the groups", below-1)
		}
		index[i] = x
	}
	if f.err != nil {
		return torch.Tensor{}
	}
	t, err := torch.FromSlice(index)
	if err != nil {
		f.err = err
		return torch.Tensor{}
	}
	torch.Detach(t)
	return t
}

// What SimulateRadon draws from: near the estimates of Gelman and Hill (2007, section 12.6) for Minnesota.
const (
	radonIntercept = 1.46
	radonUranium   = 0.72
	radonFloor     = -0.69
	radonTau       = 0.16
	radonSigma     = 0.76
	radonFirst     = 0.17 // share of homes measured on the first floor
)

// SimulateRadon draws data for [Radon] with the default priors from the random stream (seed, 0): the same numbers each
// time. The coefficients are 1.46 (intercept), 0.72 (uranium) and −0.69 (floor), tau is 0.16 and sigma 0.76; 17 % of
// the homes are measured on the first floor. The first homes fill the counties one by one, and each of the others is in
// county ⌊J·u²⌋ with u uniform: the last counties have few. Fewer homes than counties are an error.
func SimulateRadon(counties, homes int, seed uint64) (Radon, error) {
	f := &fields{config: "models.SimulateRadon"}
	f.atLeast("counties", counties, 1)
	f.atLeast("homes", homes, max(counties, 1))
	if f.err != nil {
		return Radon{}, f.err
	}
	var normal, uniform []float64
	err := torch.Do(func(*torch.Scope) error {
		source := torch.NewSource(seed, 0)
		z, err := source.Normal([]int{2*counties + homes}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		u, err := source.Uniform([]int{2 * homes}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		if normal, err = torch.ToSlice[float64](z); err != nil {
			return err
		}
		uniform, err = torch.ToSlice[float64](u)
		return err
	})
	if err != nil {
		return Radon{}, err
	}
	var c Radon
	levels := make([]float64, counties)
	for j := range levels {
		c.Uranium = append(c.Uranium, 0.4*normal[j])
		levels[j] = radonIntercept + radonUranium*c.Uranium[j] + radonTau*normal[counties+j]
	}
	for i := range homes {
		county := i
		if i >= counties {
			county = min(int(math.Floor(float64(counties)*uniform[i]*uniform[i])), counties-1)
		}
		floor := 0.0
		if uniform[homes+i] < radonFirst {
			floor = 1
		}
		c.County, c.Floor = append(c.County, county), append(c.Floor, floor)
		c.Y = append(c.Y, levels[county]+radonFloor*floor+radonSigma*normal[2*counties+i])
	}
	return c, nil
}

// RadonSimulated is [Radon], not centred, of 60 homes in 8 counties that SimulateRadon draws with seed 1.
func RadonSimulated() (Model, error) {
	c, err := SimulateRadon(8, 60, 1)
	if err != nil {
		return Model{}, err
	}
	m, err := c.Build()
	return named("radon", m, err)
}
