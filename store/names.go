package store

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/draws"
)

// The names of the sampler's statistics elsewhere, in CmdStan's order of columns.
var (
	statOrder = []string{
		draws.StatLP, draws.StatAccept, draws.StatStepSize, draws.StatTreeDepth, draws.StatLeapfrog, draws.StatDivergent,
		draws.StatEnergy,
	}
	cmdStanStat = map[string]string{
		draws.StatLP: "lp__", draws.StatAccept: "accept_stat__", draws.StatStepSize: "stepsize__",
		draws.StatTreeDepth: "treedepth__", draws.StatLeapfrog: "n_leapfrog__", draws.StatDivergent: "divergent__",
		draws.StatEnergy: "energy__",
	}
	arviZStat = map[string]string{
		draws.StatLP: "lp", draws.StatAccept: "acceptance_rate", draws.StatStepSize: "step_size",
		draws.StatTreeDepth: "tree_depth", draws.StatLeapfrog: "n_steps", draws.StatDivergent: "diverging",
		draws.StatEnergy: "energy",
	}
)

// kelvinStats gives statistics the names that Kelvin has for them. A name that is not known stays.
func kelvinStats(names []string) []string {
	d, err := draws.New(nil, names, 1)
	if err != nil {
		return names // the caller meets the same error, with its place
	}
	out := slices.Clone(names)
	for _, stat := range statOrder {
		if name, ok := d.StatName(stat); ok {
			out[slices.Index(names, name)] = stat
		}
	}
	return out
}

// identifiers makes names unique and fit for other programs. fit leaves a fit name as it is. A name that is in taken,
// or that another name has already, gets a number.
func identifiers(names []string, fit func(string) string, taken ...string) []string {
	seen := map[string]bool{}
	for _, name := range taken {
		seen[name] = true
	}
	next := map[string]int{} // the number from which to look on; without it many equal names take quadratic time
	out, done := make([]string, len(names)), make([]bool, len(names))
	for pass := range 2 { // those that are fit first, so that they keep their names
		for i, name := range names {
			base := fit(name)
			if done[i] || (pass == 0 && (base != name || seen[name])) {
				continue
			}
			to, k := base, max(next[base], 2)
			for ; seen[to]; k++ {
				to = base + "_" + strconv.Itoa(k)
			}
			next[base] = k
			out[i], seen[to], done[i] = to, true, true
		}
	}
	return out
}

// replaceRunes puts _ for the characters that are not allowed.
func replaceRunes(name string, allowed func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '_'
	}, name)
}

// anyName leaves a name as it is.
func anyName(name string) string { return name }

// wordName has letters, digits and _ only, as Stan's names.
func wordName(name string) string {
	return replaceRunes(name, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// fileName has only characters that a file may have in its name on every system, and no dot in front.
func fileName(name string) string {
	name = replaceRunes(name, func(r rune) bool {
		return r >= ' ' && r != 0x7f && !strings.ContainsRune(`/\:*?"<>|`, r)
	})
	if strings.HasPrefix(name, ".") {
		name = "_" + name[1:]
	}
	return name
}
