package setup

import (
	"fmt"
	"slices"
	"strings"
)

// Tiers says how log densities can be evaluated on this machine, and where compiled C is kept.
type Tiers struct {
	Default    string `json:"default"`       // that runs take: native, vm, replay or eager
	Variable   string `json:"kelvin_native"` // the environment variable KELVIN_NATIVE, which replaces it
	Compiler   string `json:"c_compiler"`    // version and path; "" without a compiler
	NoCompiler string `json:"no_c_compiler"` // why no compiler was found
	Cache      string `json:"cache_dir"`
	Unkept     string `json:"not_kept"` // why compiled C is not kept there; "" when it is
}

// Tier is one way to evaluate log densities, as the probe has tried it.
type Tier struct {
	Name       string  `json:"name"`
	By         string  `json:"by"`          // the compiler, or the instruction set
	Reason     string  `json:"reason"`      // why it cannot be used; "" when it can
	GradientUS float64 `json:"gradient_us"` // one gradient of the same regression, in microseconds
}

// tierNames are what KELVIN_NATIVE may be, besides nothing.
var tierNames = []string{"require", "native", "vm", "replay", "eager"}

// findTiers looks which tiers there are.
func (d *doctor) findTiers() {
	t := &Tiers{Default: "vm", Variable: d.sys.Getenv("KELVIN_NATIVE")}
	d.Tiers = t
	if c, err := d.sys.CCompiler(); err != nil {
		t.NoCompiler = err.Error()
	} else {
		t.Compiler, t.Default = fmt.Sprintf("%s (%s)", c.Version, c.Path), "native"
	}
	var err error
	if t.Cache, err = d.sys.KeepsC(); err != nil {
		t.Unkept = err.Error()
	}
	switch v := strings.ToLower(t.Variable); {
	case v == "" || v == "require":
	case slices.Contains(tierNames, v):
		t.Default = v
	default:
		d.problem(fail(nil, "unset it, or set it to "+strings.Join(tierNames, ", "),
			"the environment variable KELVIN_NATIVE is %q", t.Variable))
	}
}

// tried takes over what the probe found out: a compiler that is there may fail.
func (d *doctor) tried(tiers []Tier) {
	if d.Tiers.Variable != "" || d.Tiers.Default != "native" {
		return
	}
	for _, t := range tiers {
		if t.Name == "native" && t.Reason != "" {
			d.Tiers.Default = "vm"
		}
	}
}

// lines are the report's lines on tiers: names and texts.
func (r *Report) tierLines() [][2]string {
	t := r.Tiers
	if t == nil {
		return nil
	}
	native, vm, eager := "C by "+t.Compiler, "in every program", "every log density"
	replay := "in every program, for what the others cannot compile: float32, other devices"
	if t.Compiler == "" {
		native = "no: " + t.NoCompiler + "; it needs a C compiler (apt-get install gcc), or gradients of `kelvin compile`"
	}
	if r.Runtime != nil {
		for _, tier := range r.Runtime.Tiers {
			switch us := fmt.Sprintf("%.3g µs", tier.GradientUS); {
			case tier.Name == "native" && tier.Reason != "":
				native = "no: " + strings.TrimPrefix(strings.TrimPrefix(tier.Reason, "native: "), "cc: ")
			case tier.Name == "native":
				native = us + ", " + native
			case tier.Name == "vm" && tier.Reason != "":
				vm = "no: " + tier.Reason
			case tier.Name == "vm":
				vm = fmt.Sprintf("%s, %s, vector instructions: %s", us, vm, tier.By)
			case tier.Name == "replay" && tier.Reason != "":
				replay = "no: " + tier.Reason
			case tier.Name == "replay":
				replay = us + ", " + replay
			}
		}
		eager = fmt.Sprintf("%.3g µs for one value-and-gradient", r.Runtime.GradientUS)
	}
	if t.Compiler != "" {
		if t.Unkept == "" {
			native += ", kept in " + t.Cache
		} else {
			native += ", compiled anew in each process: " + t.Unkept
		}
	}
	runs := t.Default
	if t.Variable != "" {
		runs += ", by KELVIN_NATIVE=" + t.Variable
	}
	return [][2]string{{"tier native", native}, {"tier vm", vm}, {"tier replay", replay}, {"tier eager", eager},
		{"runs take", runs}}
}
