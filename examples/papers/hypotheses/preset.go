package main

// wenzelHMC is the comparison of HMC with SG-MCMC of Wenzel et al. (2020), on data that are drawn from the prior. Draws
// are before thinning. The step sizes of HMC are adapted, there and here.
type wenzelHMC struct {
	Chains, TestCases, LeapfrogSteps int
	BurnIn, Draws                    int
	Thin                             int
}

// presets are the paper's, and the same with every draw of a tenth of the transitions: a quarter of the time.
var presets = map[string]wenzelHMC{
	"hmc-sghmc":    {Chains: 5, TestCases: 10_000, LeapfrogSteps: 100, BurnIn: 5000, Draws: 25_000, Thin: 10},
	"hmc-sghmc-25": {Chains: 5, TestCases: 10_000, LeapfrogSteps: 100, BurnIn: 5000, Draws: 2500, Thin: 1},
}
