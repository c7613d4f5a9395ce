package diag_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// methods are all of Kelvin.
var methods = []infer.Method{hmc.NUTS{}, hmc.HMC{}, hmc.Exchange{}, hmc.MAMS{}, hmc.MCLMC{},
	evidence.SMC{}, evidence.AIS{}, evidence.TI{}, sgmcmc.SGHMC{}, sgmcmc.SGLD{}, sgmcmc.BAOA{}, sgmcmc.SGNHT{},
	sgmcmc.ATMC{}, sgmcmc.PSGLD{}, sgmcmc.SGLRW{}, sgmcmc.SymplecticSGHMC{}, pathfinder.Pathfinder{}, vi.Diag{},
	vi.Dense{}, vi.LowRank{}, svi.SVI{}, laplace.DenseHessian{}, laplace.DenseGGN{}, laplace.DiagGGN{},
	laplace.DenseFisher{}, laplace.DiagFisher{}, laplace.KFAC{}, ekf.Dense{}, ekf.Diag{}, ekf.GaussNewton{},
	optim.LBFGS{}, optim.Adam{}, optim.AdamW{}, optim.SGD{}}

// structs are the methods and the options by their names, such as "hmc.NUTS".
func structs() map[string]reflect.Type {
	all := map[string]reflect.Type{"infer.Options": reflect.TypeFor[infer.Options]()}
	for _, m := range methods {
		all[fmt.Sprintf("%T", m)] = reflect.TypeOf(m)
	}
	return all
}

// unwell are draws with everything wrong that advice is about.
func unwell(t *testing.T, method, target string, depth float64, length int) *draws.Draws {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"apart", "near", "slow", "still", "stuck", "bad"}
	sites := make([]draws.Site, len(names))
	for i, name := range names {
		sites[i] = draws.Site{Name: name, Offset: i, Size: 1}
	}
	stats := []string{draws.StatDivergent, draws.StatTreeDepth, draws.StatEnergy, draws.StatHeld, draws.StatAccept,
		draws.StatLeapfrog}
	d, err := draws.New(sites, stats, 4)
	require.NoError(t, err)
	slow := 0.0
	for c := range 4 {
		energy := 0.0
		for i := range length {
			z := rng.NormFloat64()
			slow = 0.99*slow + rng.NormFloat64()
			energy = 0.99*energy + rng.NormFloat64()
			row := []float64{z + 9*float64(c), z + 0.3*float64(c), slow, 2, z, z}
			if c == 3 && i < length/4 {
				row[4] = 9
			}
			if i == 3 {
				row[5] = math.NaN()
			}
			require.NoError(t, d.AppendChain(c, row, []float64{float64(i % 2), depth, energy, float64(i % 2), 1, 20}))
		}
	}
	d.SetAttr(draws.AttrMethod, method)
	d.SetAttr("target_accept", target)
	return d
}

var (
	literal = regexp.MustCompile(`\b([a-z]+\.[A-Z]\w*)\{`)
	first   = regexp.MustCompile(`^(\w+): `)
	word    = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)
)

// checkAdvice fails where advice sets a field that its struct lacks, or names one that neither the method of the draws
// nor the options of a run have.
func checkAdvice(t *testing.T, method, advice string) {
	t.Helper()
	all := structs()
	known := map[string]bool{} // of any method
	for _, s := range all {
		for i := range s.NumField() {
			known[s.Field(i).Name] = true
		}
	}
	allowed := []reflect.Type{all["infer.Options"]}
	if own, ok := all[method]; ok {
		allowed = append(allowed, own)
	}
	if method == "hmc.Exchange" {
		allowed = append(allowed, all["hmc.NUTS"])
	}
	for _, at := range literal.FindAllStringSubmatchIndex(advice, -1) {
		name := advice[at[2]:at[3]]
		s, ok := all[name]
		if !assert.True(t, ok, "%s: %q: there is no %s", method, advice, name) {
			continue
		}
		allowed = append(allowed, s)
		if field := first.FindStringSubmatch(advice[at[1]:]); field != nil {
			_, ok := s.FieldByName(field[1])
			assert.True(t, ok, "%s: %q: %s has no field %s", method, advice, name, field[1])
		}
	}
	for _, name := range word.FindAllString(advice, -1) {
		if method == "" || !known[name] || strings.Contains(advice, "."+name+"{") || name == "Look" {
			continue
		}
		has := slices.ContainsFunc(allowed, func(s reflect.Type) bool { _, ok := s.FieldByName(name); return ok })
		assert.True(t, has, "%s: %q: %s has no field %s", method, advice, method, name)
	}
}

// Whatever is wrong, advice names fields that the method of the draws has, as they are set.
func TestAdviceNamesFieldsThatExist(t *testing.T) {
	looked, seen := 0, map[string]bool{}
	for _, m := range append([]infer.Method{nil}, methods...) {
		name := ""
		if m != nil {
			name = fmt.Sprintf("%T", m)
		}
		for _, target := range []string{"", "0.95", "0.99"} {
			for _, depth := range []float64{0, 10} {
				for _, length := range []int{3, 200} {
					r, err := diag.Diagnose(unwell(t, name, target, depth, length), diag.DiagnoseOptions{})
					require.NoError(t, err)
					for _, f := range r.Findings {
						if looked++; !seen[name+f.Advice] {
							checkAdvice(t, name, f.Advice)
						}
						seen[name+f.Advice] = true
					}
				}
			}
		}
	}
	require.Greater(t, looked, 1000)
}

// Each method hears what its fields can do, and nothing of other families.
func TestAdviceOfEachFamily(t *testing.T) {
	for _, c := range []struct {
		method string
		depth  float64
		code   diag.Code
		want   string
	}{
		{"hmc.Exchange", 10, diag.CodeDivergence, "Set hmc.Exchange{Kernel: hmc.NUTS{TargetAccept: 0.95}}, then 0.99."},
		{"hmc.Exchange", 0, diag.CodeDivergence, "Set hmc.Exchange{Kernel: hmc.HMC{TargetAccept: 0.95}}, then 0.99."},
		{"hmc.Exchange", 10, diag.CodeTreeDepth, "Set hmc.Exchange{Kernel: hmc.NUTS{MaxDepth: 12}}."},
		{"hmc.MAMS", 0, diag.CodeDivergence, "Set hmc.MAMS{TargetAccept: 0.95}, then 0.99."},
		{"hmc.MCLMC", 0, diag.CodeDivergence, "Set hmc.MCLMC{Variance: 1e-4}, then 1e-5."},
		{"evidence.SMC", 0, diag.CodeRHat, "The clouds of particles disagree: do not use the draws."},
		{"evidence.TI", 0, diag.CodeRHat, "The ladders disagree: do not use the draws."},
		{"pathfinder.Pathfinder", 0, diag.CodeRHat, "Raise pathfinder.Pathfinder{Paths: ...}"},
		{"svi.SVI", 0, diag.CodeRHat, "The fits disagree: do not use the draws."},
		{"svi.SVI", 0, diag.CodeHeld, "a smaller LR in svi.SVI{Optimizer: optim.Adam{LR: ...}}"},
		{"optim.LBFGS", 0, diag.CodeHeld, "take an optimiser whose steps you set, such as optim.Adam."},
	} {
		r, err := diag.Diagnose(unwell(t, c.method, "", c.depth, 200), diag.DiagnoseOptions{})
		require.NoError(t, err)
		found := r.Of(c.code)
		require.NotEmpty(t, found, c)
		assert.Contains(t, found[0].Advice, c.want, c.method)
	}
	for _, name := range []string{"pathfinder.Pathfinder", "svi.SVI"} { // a fit has no chain to look at
		r, err := diag.Diagnose(unwell(t, name, "", 0, 200), diag.DiagnoseOptions{})
		require.NoError(t, err)
		assert.NotContains(t, r.String(), "traces")
		assert.NotContains(t, r.String(), "chains that got stuck")
		one, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, nil, 1)
		require.NoError(t, err)
		one.SetAttr(draws.AttrMethod, name)
		for i := range 100 {
			require.NoError(t, one.AppendChain(0, []float64{float64(i * 37 % 101)}, nil))
		}
		r, err = diag.Diagnose(one, diag.DiagnoseOptions{})
		require.NoError(t, err)
		assert.Empty(t, r.Of("one_chain"), "one fit is enough")
	}
}
