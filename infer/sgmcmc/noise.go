package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// noiseScale is the standard deviation of the injected noise, √(Tε(2a − Tεβ)), where a is 1 for SGLD and α for SGHMC. A
// negative variance means that β says there is more gradient noise than the friction can make up for.
func noiseScale(method string, step int64, lr, a, beta, temperature float64) (float64, error) {
	variance := temperature * lr * (2*a - temperature*lr*beta)
	if !(variance >= 0) {
		return 0, fmt.Errorf("%s: the noise variance Tε(2a − Tεβ) is %g at update %d, with T = %g, ε (LR) = %g, a = %g, β (Beta) = %g: "+
			"Beta must be at most 2a/(Tε) = %g, or LR smaller: %w", method, variance, step, temperature, lr, a, beta,
			2*a/(temperature*lr), infer.ErrConfig)
	}
	return math.Sqrt(variance), nil
}

// rates are the step size and the temperature of an update, checked.
func rates(name string, step int64, lr, temperature infer.Schedule) (eps, temp float64, err error) {
	eps, temp = lr(step), temperature(step)
	if err := method.CheckValue(name, fmt.Sprintf("LR at update %d", step), eps, 0, false); err != nil {
		return 0, 0, err
	}
	return eps, temp, method.CheckValue(name, fmt.Sprintf("Temperature at update %d", step), temp, 0, false)
}

// checkStreams makes sure that there is a stream for each chain.
func checkStreams(method string, p infer.Params, s torch.Streams) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if len(s.Chains) != p.Chains() {
		return fmt.Errorf("%s: %d random streams for %d chains: there must be one for each: %w", method, len(s.Chains), p.Chains(), infer.ErrConfig)
	}
	return nil
}

// withNoise appends scale·z to the terms of an update. At scale 0 nothing is drawn.
func withNoise(terms []torch.Term, scale float64, like *ts.Tensor, streams *torch.Streams) ([]torch.Term, error) {
	if scale == 0 {
		return terms, nil
	}
	z, err := streams.NormalLike(like)
	if err != nil {
		return nil, err
	}
	return append(terms, torch.Term{Coeff: scale, Tensor: z}), nil
}
