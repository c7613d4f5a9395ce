package diag

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// family says whose advice applies.
type family int

const (
	unknown        family = iota // draws from elsewhere, such as CmdStan's or ArviZ's
	hamiltonian                  // HMC and NUTS
	microcanonical               // MAMS and MCLMC
	gradient                     // stochastic-gradient samplers
	evidence                     // clouds of particles, and ladders of rungs
	optimiser                    // draws are points at which chains ended
	fitted                       // independent draws from a fit: variational, Laplace, filters, Pathfinder
	other                        // a method of the user's own
)

// families are those of the packages of methods.
var families = map[string]family{"hmc": hamiltonian, "sgmcmc": gradient,
	"evidence": evidence, "optim": optimiser, "vi": fitted, "svi": fitted, "laplace": fitted, "ekf": fitted,
	"pathfinder": fitted}

// method is what d says of the method that made it: its name, such as "sgmcmc.SGHMC", empty where d does not say.
func method(d *draws.Draws) (name string, f family) {
	name = d.Attrs()[draws.AttrMethod]
	if name == "" {
		stats := d.Stats()
		if slices.Contains(stats, draws.StatHeld) || slices.Contains(stats, draws.StatGradNorm) {
			return "", gradient
		}
		return "", unknown
	}
	if name == "hmc.MAMS" || name == "hmc.MCLMC" {
		return name, microcanonical
	}
	room, _, _ := strings.Cut(name, ".")
	if f, ok := families[room]; ok {
		return name, f
	}
	return name, other
}

// The fields that advice names, of the methods that have them. Those of "hmc.Exchange" are of its Kernel.
var fields = map[string][]string{
	"hmc.NUTS":               {"TargetAccept", "MaxDepth", "StepSize"},
	"hmc.HMC":                {"TargetAccept", "StepSize"},
	"hmc.MAMS":               {"TargetAccept", "StepSize"},
	"hmc.MCLMC":              {"Variance", "StepSize"},
	"sgmcmc.ATMC":            {"LR"},
	"sgmcmc.BAOA":            {"LR"},
	"sgmcmc.PSGLD":           {"LR"},
	"sgmcmc.SGHMC":           {"LR"},
	"sgmcmc.SGLD":            {"LR"},
	"sgmcmc.SGLRW":           {"LR"},
	"sgmcmc.SGNHT":           {"LR"},
	"sgmcmc.SymplecticSGHMC": {"LR"},
	"optim.Adam":             {"LR"},
	"optim.AdamW":            {"LR"},
	"optim.SGD":              {"LR"},
	"evidence.SMC":           {"Moves"},
	"evidence.AIS":           {"Moves"},
	"evidence.TI":            {"Rungs"},
	"pathfinder.Pathfinder":  {"Paths"},
	"svi.SVI":                {"Optimizer", "Samples"},
	"vi.Dense":               {"Optimizer", "Samples"},
	"vi.Diag":                {"Optimizer", "Samples"},
	"vi.LowRank":             {"Optimizer", "Samples"},
}

// adviser gives advice in the words of the method that made the draws.
type adviser struct {
	method string
	family family
	kernel string  // the method that moves the replicas of an exchange
	draws  int     // of each chain
	depth  int     // the limit of the tree depth
	dim    int     // of the draws
	target float64 // the acceptance that the user set for the run; 0 where that is not known
	given  bool    // the user set the step size
	scaled string  // latent normal variables of unknown scale, where the draws name them
	// The run noted that the density has no end, which is the cause of what else is wrong.
	endless bool
	// undefined says that a note is about gradients that are NaN where the density is finite.
	undefined bool
}

// The kind of the note about a density without an end, and attributes: the target of the acceptance that the user set,
// latent normal variables of unknown scale, and that the user set the step size.
const (
	endless    = "endless" // the kind of the note
	undefined  = "undefined_gradient"
	attrTarget = "target_accept"
	attrScaled = "scaled_normals"
	attrStep   = "step_size"
	given      = "given"
)

// exchange is the method whose fields are those of its Kernel.
const exchange = "hmc.Exchange"

// lowRankDim is how many parameters a LowRank metric is advised for at most: its adaptation costs memory and time of
// their square.
const lowRankDim = 1000

// owner is the method whose fields the user sets.
func (a adviser) owner() string {
	if a.method == exchange {
		return a.kernel
	}
	return a.method
}

// set is how the user sets a field of the method, hmc.NUTS{TargetAccept: 0.95}; empty where the method lacks it.
func (a adviser) set(field, value string) string {
	owner := a.owner()
	if !slices.Contains(fields[owner], field) {
		return ""
	}
	setting := fmt.Sprintf("%s{%s: %s}", owner, field, value)
	if a.method == exchange {
		return exchange + "{Kernel: " + setting + "}"
	}
	return setting
}

// more asks for so many times the draws, rounded up to two digits.
func (a adviser) more(times float64) string {
	n := max(2, times) * float64(max(a.draws, minDraws))
	if !(n < 1e9) {
		return "Draw more"
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	count := int(math.Ceil(n/unit-1e-9) * unit)
	if a.method == "" {
		return fmt.Sprintf("Draw more, about %d for each chain", count)
	}
	return fmt.Sprintf("Draw more, with infer.Options{Draws: %d}", count)
}

// of is the advice for a finding, times is the factor by which draws are too few. Of the findings that other samplers
// have too, it follows the pages of Stan and of ArviZ on warnings.
func (a adviser) of(code Code, times float64) string {
	switch code {
	case CodeDivergence, CodeTreeDepth, CodeEBFMI, CodeHeld, CodeRHat, CodeESSBulk, CodeESSTail:
		if a.undefined {
			return "Gradients are NaN where the density is finite, as this report says in a line of its own: mend that first. " +
				"Steps, draws and updates are not the cause."
		}
		if a.endless {
			return "The posterior density has no end, as this report says in a line of its own: mend that first. Steps, " +
				"draws and updates are not the cause."
		}
	}
	switch code {
	case CodeDivergence:
		return "The step size is too large for the curvature that the sampler met, and what lies there is missing " +
			"from the draws. " + a.smallerSteps()
	case CodeTreeDepth:
		advice := "Draws are valid but expensive: trajectories ended before they turned. "
		deeper := fmt.Sprint(a.depth + 2)
		if set := a.set("MaxDepth", deeper); set != "" {
			advice += "Set " + set + ". "
		} else if a.family == unknown {
			advice += "Allow deeper trees (hmc.NUTS{MaxDepth: " + deeper + "}, Stan's and PyMC's max_treedepth). "
		}
		if owner := a.owner(); a.dim > 1 && a.dim < lowRankDim && slices.Contains(fields[owner], "MaxDepth") {
			return advice + "Where parameters are correlated, " + owner + "{Metric: hmc.LowRank} makes trajectories shorter; " +
				"so do parameters on like scales."
		}
		return advice + "Parameters on like scales, or a dense metric, make shorter trajectories do."
	case codeJumps:
		return "Look for branches, rounding, comparisons and torch.Where on a parameter, whose two sides differ where " +
			"they meet. Use a smooth form, or sum over the discrete choice. Draws are right, but expensive."
	case CodeEBFMI:
		return "Fresh momenta change the energy too little to reach the tails. " + a.more(2) +
			"; reparametrise hierarchies and heavy tails, for instance non-centred."
	case CodeHeld:
		lower := "Use a smaller step size"
		if set := a.set("LR", "..."); set != "" {
			lower = "Set a smaller LR in " + set
		} else if set := a.set("Optimizer", "optim.Adam{LR: ...}"); set != "" {
			lower = "Set a smaller LR in " + set
		} else if a.family == gradient {
			lower = "Set a smaller LR"
		} else if a.family == optimiser {
			return "An update that is not finite is refused, and the chain stays where it is. Look for a density that " +
				"overflows, start nearer to the mode, or take an optimiser whose steps you set, such as optim.Adam."
		}
		return "An update that is not finite is refused, and the chain stays where it is. " + lower +
			", ten times smaller at first. If updates are still held, look for a density that overflows, or start " +
			"nearer to the mode."
	case CodeRHat:
		return a.disagree()
	case CodeESSBulk, CodeESSTail:
		if a.family == optimiser {
			return "Draws of an optimiser are points on its way, and not of the posterior: their means and spread say nothing " +
				"of it. Use a sampler, such as hmc.NUTS, for uncertainty."
		}
		if code == CodeESSTail {
			return "Variances and tail quantiles are imprecise. " + a.more(times) + a.decorrelate()
		}
		return "Means and medians are imprecise. " + a.more(times) + a.decorrelate()
	case CodeNotFinite:
		return "Means and diagnostics are not defined. Look for a step size that is too large, " +
			"and for a density that overflows."
	case CodeConstant:
		return "A fixed quantity may be so; a parameter that never moved has not been sampled."
	case codeFewDraws:
		if a.family == optimiser {
			return "That is the point where the chain ended, and more draws would be the same. For uncertainty use a sampler, " +
				"such as hmc.NUTS, or laplace."
		}
		return "Nothing can be said about convergence. " + a.more(100) + "."
	case codeOneChain:
		if a.method != "" {
			return "Chains from different starting points show what one cannot. Set infer.Options{Chains: 4}."
		}
		return "Chains from different starting points show what one cannot. Run four."
	case codeSteps:
		return "They met different curvature: look at the draws of each chain by itself for several modes, a funnel or a " +
			"chain that got stuck in its warm-up. Warm up longer, and start elsewhere."
	case codeStill:
		return "Its updates were all refused. Leave it out, and look at where it started and at its step size: a density " +
			"that is not finite around, or steps that are far too large. Warm up longer."
	case codeUnequal:
		return "Let the run end, or resume it. Diagnostics use the first draws of each chain, as many as the shortest has."
	}
	return ""
}

// smallerSteps is the advice on steps that are too large.
func (a adviser) smallerSteps() string {
	remedy := "reparametrise (hierarchies: non-centred, as ppl.Reparam writes them) or use tighter priors."
	if a.scaled != "" {
		remedy = "write " + a.scaled + " non-centred (ppl.Reparam), let ppl.AutoReparam choose the form, or use tighter " +
			"priors."
	}
	otherwise := "If divergences stay, " + remedy
	set, next := a.set("TargetAccept", "0.95"), "then 0.99"
	switch smaller := a.set("Variance", "1e-4"); {
	case a.given && a.set("StepSize", "") != "":
		return "Make " + a.set("StepSize", "...") + " smaller, or leave it out: then it adapts. " + otherwise
	case smaller != "":
		set, next = smaller, "then 1e-5"
	case a.family == unknown:
		return "Raise the target acceptance (hmc.NUTS{TargetAccept: 0.95}, Stan's adapt_delta, PyMC's target_accept), " +
			"then to 0.99. " + otherwise
	case set == "":
		return "Use smaller steps. " + otherwise
	case a.target >= 0.99:
		return fmt.Sprintf("This run had TargetAccept: %g already, and still smaller steps are no remedy: ", a.target) +
			remedy
	case a.target >= 0.95:
		return fmt.Sprintf("This run had TargetAccept: %g. Set %s. ", a.target, a.set("TargetAccept", "0.99")) + otherwise
	}
	return "Set " + set + ", " + next + ". " + otherwise
}

// disagree is the advice on chains that differ by more than chance.
func (a adviser) disagree() string {
	switch a.family {
	case fitted:
		if set := a.set("Paths", "..."); set != "" {
			return "The fits disagree: do not use the draws. Raise " + set + ", or sample with hmc.NUTS{}."
		}
		return "The fits disagree: do not use the draws. Look for several optima, and for fits that ended " +
			"before they converged."
	case optimiser:
		return "The chains ended at different points: look for several modes, and for chains that had not arrived. " +
			"Give the run more updates (infer.Options{Warmup: ...}), and choose the point of the highest density."
	case gradient:
		return "The chains disagree: do not use the draws. Run longer, also before the first draw is kept; look " +
			"for several modes, for parameters that the data do not identify, and for a LR too small to move."
	case evidence:
		if set := a.set("Moves", "..."); set != "" {
			return "The clouds of particles disagree: do not use the draws. Take more particles " +
				"(infer.Options{Draws: ...}), and move them more often: raise " + set + "."
		}
		if set := a.set("Rungs", "..."); set != "" {
			return "The ladders disagree: do not use the draws. Run longer, warm-up included, and with more rungs: raise " +
				set + "."
		}
	}
	return "The chains disagree: do not use the draws. Run longer, warm-up included; look at the traces for " +
		"several modes, for parameters that the data do not identify, and for chains that got stuck."
}

// fitsDiffer is the advice on fits that are not where one optimum is, but near.
func (a adviser) fitsDiffer() string {
	if a.endless {
		return a.of(CodeRHat, 1)
	}
	const more = "The fits differ by less than their standard deviations, which more draws do not change. "
	if set := a.set("Samples", "..."); set != "" {
		return more + "Make more updates (infer.Options{Warmup: ...}), with an LR that falls to 0 " +
			"(" + a.set("Optimizer", "optim.Adam{LR: ...}") + "), or make updates less noisy: raise " + set +
			" or the size of minibatches."
	}
	if set := a.set("Paths", "..."); set != "" {
		return more + "Raise " + set + ", or sample with hmc.NUTS{}."
	}
	if strings.HasPrefix(a.method, "laplace.") {
		return more + "Come nearer to the mode: make more updates (infer.Options{Warmup: ...})."
	}
	return more + "Look for what differs between them, such as the start and the order of the data."
}

// stoodStill is the advice on an element whose chains agree, but repeat an extreme value.
func (a adviser) stoodStill() string {
	if a.endless {
		return a.of(CodeESSTail, 1)
	}
	const wrong = "Variances and tail quantiles are not to be trusted. "
	switch a.family {
	case optimiser:
		return a.of(CodeESSTail, 1)
	case fitted, evidence:
		return wrong + "Look for a limit in the model at that value, and for few draws that were taken again and again."
	}
	return wrong + "Look at the trace for updates that were refused, for steps too large there, and for a limit in the " +
		"model at that value."
}

// short is the advice for an R-hat that chance explains.
func (a adviser) short(times float64) string {
	if a.family == optimiser || a.endless {
		return a.of(CodeRHat, times)
	}
	return "The chains are too short to tell whether they agree. " + a.more(times) + "."
}

// decorrelate ends the advice on effective sample sizes.
func (a adviser) decorrelate() string {
	switch a.family {
	case fitted:
		return "."
	case gradient:
		return ", or keep draws further apart (Thin)."
	case evidence:
		if set := a.set("Moves", "..."); set != "" {
			return ", or move particles more often: raise " + set + "."
		}
	}
	return ", or reparametrise to weaken correlations."
}
