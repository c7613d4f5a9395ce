package infertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
)

// EvidenceEstimates estimates the log evidence of a program in four ways: by SMC and TI with the options walks, by a
// bridge from draws of NUTS with the seed of walks, and by Laplace's method.
func EvidenceEstimates(ctx context.Context, p infer.Program, walks infer.Options) (map[string]*evidence.Result, error) {
	out := map[string]*evidence.Result{}
	var err error
	for name, m := range map[string]infer.Method{"SMC": evidence.SMC{}, "TI": evidence.TI{}} {
		if out[name], err = evidence.Run(ctx, p, m, walks); err != nil {
			return nil, err
		}
	}
	nuts, err := infer.Run(ctx, p, hmc.NUTS{}, infer.Options{Seed: walks.Seed})
	if err != nil {
		return nil, err
	}
	if out["bridge"], err = evidence.Bridge(p, nuts.Unconstrained, evidence.BridgeOptions{}); err != nil {
		return nil, err
	}
	mode, err := infer.Run(ctx, p, laplace.DenseHessian{}, infer.Options{Chains: 1})
	if err != nil {
		return nil, err
	}
	out["Laplace"], err = evidence.Laplace(p, mode)
	return out, err
}

// EvidenceAgree returns an error unless each two estimates are within three of their joint standard errors, and each
// standard error is below most.
func EvidenceAgree(estimates map[string]*evidence.Result, most float64) error {
	var bad []error
	for a, r := range estimates {
		if !(r.SE < most) {
			bad = append(bad, fmt.Errorf("the standard error of %s is %v, not below %v", a, r.SE, most))
		}
		for b, s := range estimates {
			if a >= b {
				continue
			}
			log, se, err := evidence.BayesFactor(r, s)
			if err != nil {
				return err
			}
			if !(-3*se <= log && log <= 3*se) {
				bad = append(bad, fmt.Errorf("%s and %s differ by %v, with a standard error of %v", a, b, log, se))
			}
		}
	}
	return errors.Join(bad...)
}
