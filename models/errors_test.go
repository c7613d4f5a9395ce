package models_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/stretchr/testify/require"
)

type builder interface {
	Build() (models.Model, error)
}

// A configuration that is wrong is an error that names the configuration, the field and what is wrong with it.
func TestErrors(t *testing.T) {
	x, y := [][]float64{{1, 2}, {3, 4}, {5, 6}}, []float64{1, 0, 1}
	nan := math.NaN()
	radon := func(change func(c *models.Radon)) builder {
		c, err := models.SimulateRadon(3, 5, 1)
		require.NoError(t, err)
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		c    builder
		want []string
	}{
		"empty":      {models.LogisticRegression{}, []string{"models.LogisticRegression", "X", "0 rows"}},
		"no columns": {models.LogisticRegression{X: [][]float64{{}}, Y: y[:1]}, []string{"X", "one column"}},
		"ragged": {models.LogisticRegression{X: [][]float64{{1, 2}, {3}}, Y: y[:2]},
			[]string{"X", "row 1", "must have 2"}},
		"not a number": {models.LogisticRegression{X: [][]float64{{1, nan}}, Y: y[:1]},
			[]string{"X", "NaN at index 1", "finite"}},
		"label": {models.LogisticRegression{X: x, Y: []float64{1, -1, 0}},
			[]string{"Y", "-1 at index 1", "0 or 1"}},
		"lengths": {models.LogisticRegression{X: x, Y: y[:2]}, []string{"Y", "2 numbers", "must be 3"}},
		"scale": {models.LogisticRegression{X: x, Y: y, PriorScale: -1},
			[]string{"PriorScale", "-1", "greater than 0"}},
		"linear, lengths": {models.LinearRegression{X: x, Y: y[:1]}, []string{"models.LinearRegression", "Y", "must be 3"}},
		"linear, noise":   {models.LinearRegression{X: x, Y: y, Noise: -2}, []string{"Noise", "-2", "unknown"}},
		"linear, infinite": {models.LinearRegression{X: x, Y: y, InterceptScale: math.Inf(1)},
			[]string{"InterceptScale", "+Inf"}},
		"schools, empty": {models.Schools{}, []string{"models.Schools", "Effects", "empty"}},
		"schools, error": {models.Schools{Effects: y, Errors: []float64{1, 0, 1}},
			[]string{"Errors", "0 at index 1", "greater than 0"}},
		"schools, lengths": {models.Schools{Effects: y, Errors: y[:2]}, []string{"Errors", "2 numbers", "must be 3"}},
		"counts": {models.PoissonRegression{X: x, Y: []float64{1, 2.5, 0}},
			[]string{"models.PoissonRegression", "Y", "2.5 at index 1", "whole"}},
		"radon, county": {radon(func(c *models.Radon) { c.County[3] = 3 }),
			[]string{"models.Radon", "County", "3", "from 0 to 2"}},
		"radon, counties": {radon(func(c *models.Radon) { c.County = c.County[1:] }), []string{"County", "4", "must be 5"}},
		"radon, uranium":  {radon(func(c *models.Radon) { c.Uranium = nil }), []string{"Uranium", "empty"}},
		"radon, floor":    {radon(func(c *models.Radon) { c.Floor[0] = nan }), []string{"Floor", "NaN"}},
		"mixture": {models.NormalMixture{Y: y, Components: 1},
			[]string{"models.NormalMixture", "Components", "1", "at least 2"}},
		"mixture, mean":    {models.NormalMixture{Y: y, Components: 2, LocMean: nan}, []string{"LocMean", "NaN"}},
		"mixture, weights": {models.NormalMixture{Y: y, Components: 2, Concentration: -1}, []string{"Concentration", "-1"}},
		"order": {models.AutoRegression{Y: y, Order: 3},
			[]string{"models.AutoRegression", "Order", "3", "less than the 3"}},
		"no order":      {models.AutoRegression{Y: y}, []string{"Order", "0", "at least 1"}},
		"no series":     {models.AutoRegression{Order: 1}, []string{"Y", "empty"}},
		"states":        {models.HiddenMarkov{Y: y, States: 1}, []string{"models.HiddenMarkov", "States", "at least 2"}},
		"hidden, empty": {models.HiddenMarkov{States: 2}, []string{"Y", "empty"}},
	} {
		m, err := c.c.Build()
		require.ErrorIs(t, err, infer.ErrConfig, name)
		require.Nil(t, m.Model, name)
		for _, w := range c.want {
			require.ErrorContains(t, err, w, name)
		}
	}
	_, err := models.SimulateRadon(3, 2, 1)
	require.ErrorContains(t, err, "homes is 2: it must be at least 3")
	_, err = models.SimulateRadon(0, 2, 1)
	require.ErrorContains(t, err, "counties is 0: it must be at least 1")
	_, err = models.SimulateHMM(0, 1)
	require.ErrorContains(t, err, "times is 0: it must be at least 1")
}
