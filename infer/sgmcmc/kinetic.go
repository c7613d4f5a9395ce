package sgmcmc

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// kineticTemperatures is the mean of scale·inverse·m² over the elements of each site, for each chain; inverse, of shape [d] or
// [K, d], is 1 when nil.
func kineticTemperatures(p infer.Params, m, inverse *ts.Tensor, scale float64) ([][]float64, error) {
	var values []float64
	err := torch.Do(func(*torch.Scope) error {
		square, err := m.Square(false)
		if err != nil {
			return err
		}
		if inverse != nil {
			if square, err = square.Mul(inverse, false); err != nil {
				return err
			}
		}
		values, err = torch.ToSlice[float64](square)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("kinetic temperature: %w", err)
	}
	for i := range values {
		values[i] *= scale
	}
	return p.Layout.SiteMeans(values), nil
}

// meanOf is the mean of each row of x, a statistic with one number for each chain, in the type of x.
func meanOf(name string, x *ts.Tensor) (map[string][]float64, error) {
	dtype, err := torch.DTypeOfTensor(x)
	if err != nil {
		return nil, err
	}
	mean, err := x.MeanDim([]int64{-1}, false, dtype, false)
	if err != nil {
		return nil, err
	}
	v, err := torch.ToSlice[float64](mean)
	return map[string][]float64{name: v}, err
}
