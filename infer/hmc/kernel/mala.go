package kernel

// MALA is the Metropolis-adjusted Langevin algorithm (Roberts and Tweedie 1996): [HMC] with one leapfrog step. With step
// size ε it proposes
//
//	x' = x + (ε²/2T) M⁻¹ g(x) + ε M^-½ z,  z ~ N(0, I)
//
// and accepts with the Metropolis-Hastings probability, which is exp(H - H') of that step. Its step size is adapted to an
// acceptance of 0.574, the best in high dimensions (Roberts and Rosenthal 1998).
type MALA struct {
	Persistence  float64   // of the momentum, as in [HMC]
	Lower, Upper []float64 // a box, as in [HMC]
	MaxDeltaH    float64   // default 1000
}

// Build checks the configuration and makes the scratch memory.
func (c MALA) Build(d int) (Transition, error) {
	t, err := HMC{Steps: 1, Persistence: c.Persistence, Lower: c.Lower, Upper: c.Upper, MaxDeltaH: c.MaxDeltaH}.Build(d)
	if err != nil {
		return nil, err
	}
	t.(*hmc).target = 0.574
	return t, nil
}
