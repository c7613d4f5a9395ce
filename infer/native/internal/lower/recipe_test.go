package lower

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// sinc is sin(πx)/(πx), and 1 at 0.
func sinc(k calc, _ *Call, a []array) array {
	x := k.scale(a[0], math.Pi)
	return k.choose(k.of(ir.Eq, x, k.num(0)), k.num(1), k.div(k.of(ir.Sin, x), x))
}

var recipe = map[string]formula{
	"sinc": {1, sinc},
}

// Recipe adds the rule of CONTRIBUTING.md to those of the compiler, until remove is called.
func Recipe() (remove func()) {
	rules["sinc"] = recipe["sinc"].rule()
	return func() { delete(rules, "sinc") }
}
