package progress

import "github.com/kelvin-ppl/kelvin/infer"

// kineticTemperature is the kinetic temperature of all momenta of all chains over the temperature set: 1 on average where a
// sampler simulates its target. It is false for methods without momenta, and at temperature 0.
func kineticTemperature(p infer.Progress) (float64, bool) {
	thermal, ok := p.Transform.(infer.Thermal)
	if !ok || !(p.Info.Temperature > 0) {
		return 0, false
	}
	rows, err := thermal.KineticTemperatures(p.State)
	if err != nil {
		return 0, false
	}
	layout := p.State.Position().Layout
	sum := 0.0
	for _, row := range rows {
		for i, site := range layout.Sites {
			sum += row[i] * float64(site.Size)
		}
	}
	return sum / float64(len(rows)*layout.Dim()) / p.Info.Temperature, true
}
