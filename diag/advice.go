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
	unknown     family = iota // draws from elsewhere, such as CmdStan's or ArviZ's
	hamiltonian               // HMC and NUTS
	gradient                  // stochastic-gradient samplers
	optimiser                 // draws are points at which chains ended
	fitted                    // independent draws from a fit: variational, Laplace, filters
	other                     // a method of the user's own
)

// method is what d says of the method that made it: its name, such as "sgmcmc.SGHMC", empty where d does not say.
func method(d *draws.Draws) (name string, f family) {
	name = d.Attrs()[draws.AttrMethod]
	switch room, _, _ := strings.Cut(name, "."); room {
	case "hmc":
		return name, hamiltonian
	case "sgmcmc":
		return name, gradient
	case "optim":
		return name, optimiser
	case "vi", "laplace", "ekf":
		return name, fitted
	case "":
		stats := d.Stats()
		if slices.Contains(stats, draws.StatHeld) || slices.Contains(stats, draws.StatGradNorm) {
			return "", gradient
		}
		return "", unknown
	}
	return name, other
}

// adviser gives advice in the words of the method that made the draws.
type adviser struct {
	method string
	family family
	draws  int     // of each chain
	depth  int     // the limit of the tree depth
	target float64 // the acceptance that the user set for the run; 0 where that is not known
}

// attrTarget is the attribute with the target of the acceptance that the user set.
const attrTarget = "target_accept"

// field is how the user sets a field of the method: hmc.NUTS{TargetAccept: 0.95}.
func (a adviser) field(or, setting string) string {
	if a.method != "" {
		or = a.method
	}
	return or + "{" + setting + "}"
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
	case CodeDivergence:
		raise := "Set " + a.field("", "TargetAccept: 0.95")
		if a.family != hamiltonian {
			raise = "Raise the target acceptance (hmc.NUTS{TargetAccept: 0.95}, Stan's adapt_delta, PyMC's target_accept)"
		}
		switch {
		case a.target >= 0.99:
			raise = fmt.Sprintf("This run had TargetAccept: %g already, and still smaller steps are no remedy. Reparametrise "+
				"(hierarchies: non-centred, as ppl.Reparam writes them) or use tighter priors.", a.target)
		case a.target >= 0.95:
			raise = fmt.Sprintf("This run had TargetAccept: %g. Set %s. ", a.target, a.field("hmc.NUTS", "TargetAccept: 0.99")) +
				"If divergences stay, reparametrise (hierarchies: non-centred) or use tighter priors."
		default:
			raise += ", then 0.99. If divergences stay, reparametrise (hierarchies: non-centred) or use tighter priors."
		}
		return "The step size is too large for the curvature that the sampler met, and what lies there is missing " +
			"from the draws. " + raise
	case CodeTreeDepth:
		return fmt.Sprintf("Draws are valid but expensive: trajectories ended before they turned. Set %s. Parameters "+
			"on like scales, or a dense metric, make shorter trajectories do.",
			a.field("hmc.NUTS", fmt.Sprintf("MaxDepth: %d", a.depth+2)))
	case codeJumps:
		return "Look for branches, rounding, comparisons and torch.Where on a parameter, whose two sides differ where " +
			"they meet. Use a smooth form, or sum over the discrete choice. Draws are right, but expensive."
	case CodeEBFMI:
		return "Fresh momenta change the energy too little to reach the tails. " + a.more(2) +
			"; reparametrise hierarchies and heavy tails, for instance non-centred."
	case CodeHeld:
		lower := "Use a smaller step size"
		switch {
		case a.family == optimiser, a.family == gradient && a.method != "":
			lower = "Set a smaller LR in " + a.field("", "LR: ...")
		case a.family == gradient:
			lower = "Set a smaller LR"
		case strings.HasPrefix(a.method, "vi."):
			lower = "Set a smaller LR of the optimiser in " + a.field("", "Optimizer: ...")
		}
		return "An update that is not finite is refused, and the chain stays where it is. " + lower +
			", ten times smaller at first. If updates are still held, look for a density that overflows, or start " +
			"nearer to the mode."
	case CodeRHat:
		switch a.family {
		case fitted:
			return "The fits disagree: do not use the draws. Look for several optima, and for fits that ended " +
				"before they converged."
		case optimiser:
			return "The chains ended at different points: look for several modes, and for chains that had not arrived. " +
				"Give the run more updates (infer.Options{Warmup: ...}), and choose the point of the highest density."
		case gradient:
			return "The chains disagree: do not use the draws. Run longer, also before the first draw is kept; look " +
				"for several modes, for parameters that the data do not identify, and for a LR too small to move."
		}
		return "The chains disagree: do not use the draws. Run longer, warm-up included; look at the traces for " +
			"several modes, for parameters that the data do not identify, and for chains that got stuck."
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
	case codeUnequal:
		return "Diagnostics use the first draws of each chain, as many as the shortest has."
	}
	return ""
}

// short is the advice for an R-hat that chance explains.
func (a adviser) short(times float64) string {
	if a.family == optimiser {
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
	}
	return ", or reparametrise to weaken correlations."
}
