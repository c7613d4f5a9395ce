// Package thermo says whether a stochastic-gradient sampler simulates its target, by temperatures: those of momenta and
// of parameters, the readings of thermostats, and the noise of minibatch gradients.
//
//	_, err = kinetic.Add("dense", chain, m, mass, temperature)    // momenta at the end of a cycle
//	report, err := thermo.Diagnose(thermo.Simulation{Kinetic: &kinetic}, thermo.Options{})
//	fmt.Print(report)
//
// The package is plain Go and knows nothing of tensors. Its errors wrap
// [draws.ErrSize], [draws.ErrRange] and [diag.ErrNotFinite].
package thermo

import "github.com/kelvin-ppl/kelvin/internal/sample"

func failf(kind error, format string, args ...any) error {
	return sample.Failf("diag/thermo", kind, format, args...)
}
