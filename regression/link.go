package regression

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// inverse is the mean at a linear predictor.
func inverse(link string, eta torch.Tensor) torch.Tensor {
	switch link {
	case "log":
		return eta.Exp()
	case "logit":
		return eta.Sigmoid()
	case "probit":
		return eta.Mul(-math.Sqrt2 / 2).Erfc().Div(2)
	case "cloglog":
		return eta.Exp().Neg().Expm1().Neg()
	case "tan_half":
		return arctan(eta).Mul(2)
	}
	return eta
}

// logOdds are those of the probability at a linear predictor, without a loss of digits where it is nearly 0 or 1.
func logOdds(link string, eta torch.Tensor) torch.Tensor {
	switch link {
	case "probit":
		d := dist.Normal(0, 1)
		return dist.LogCDF(d, eta).Sub(dist.LogSurvival(d, eta))
	case "cloglog": // log(exp(e^η) - 1)
		hazard := eta.Exp()
		return hazard.Add(hazard.Neg().Expm1().Neg().Log())
	}
	return eta
}

// shares are the probability at a linear predictor and what it lacks to 1, both above 0.
func shares(link string, eta torch.Tensor) (yes, no torch.Tensor) {
	const least = 1e-300
	odds := logOdds(link, eta)
	return odds.Sigmoid().Add(least), odds.Neg().Sigmoid().Add(least)
}

// arctan is by the half angle, arctan(x) = 2 arctan(x/(1 + √(1 + x²))), four times, and then Taylor's series: its
// argument is at most tan(π/32).
func arctan(x torch.Tensor) torch.Tensor {
	for range 4 {
		x = x.Div(x.Square().Add(1).Sqrt().Add(1))
	}
	square, sum := x.Square(), torch.Of(0)
	for k := 8; k >= 0; k-- {
		term := 1 / float64(2*k+1)
		if k%2 == 1 {
			term = -term
		}
		sum = sum.Mul(square).Add(term)
	}
	return sum.Mul(x).Mul(16)
}

// forward is the link of a number, kept away from the ends at which it is infinite.
func forward(link string, mean float64) float64 {
	unit := math.Min(math.Max(mean, 0.01), 0.99)
	switch link {
	case "log":
		return math.Log(math.Max(mean, 0.01))
	case "logit":
		return math.Log(unit / (1 - unit))
	case "probit":
		return math.Sqrt2 * math.Erfinv(2*unit-1)
	case "cloglog":
		return math.Log(-math.Log1p(-unit))
	case "tan_half":
		return math.Tan(math.Min(math.Max(mean, -3), 3) / 2)
	}
	return mean
}
