package gibbs

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Blocks moves the sites of a posterior block by block (Geman and Geman 1984; Tierney 1994). With θ₁, …, θ_B the blocks
// of sites and K_b a kernel that leaves p(θ_b | all others) as it is, an update is one sweep
//
//	θ_b ← K_b(θ_b | θ₁, …, θ_B without θ_b, as they are now)    for b = 1, …, B
//
// which leaves the joint law p(θ₁, …, θ_B) as it is. K_b is an update of the method of the block, on the log density in
// the unconstrained coordinates of its sites; the other sites are data there. Each method has its own temperature and
// adapts in the warm-up of the run, or for as many updates as its own field Warmup says in loops of one's own. Blocks
// may have Blocks inside.
type Blocks []Block

// Block is a number of sites and the method that moves them.
type Block struct {
	Sites  []string // names; [Rest] stands for those that no block names
	Method infer.Method
}

// Rest names, among the Sites of a [Block], all sites that no block names.
const Rest = "*"

// Defaults are 4 chains of 1000 draws after 1000 sweeps.
func (Blocks) Defaults() infer.Options { return defaults }

var defaults = infer.Options{Chains: 4, Warmup: 1000, Draws: 1000, Thin: 1}

// name is that of errors and checkpoints.
const name = "gibbs.Blocks"

// Build checks the blocks and binds them to a target, which must tell its sites as its Program.
func (c Blocks) Build(target infer.Target) (infer.Transform, error) { return c.build(target, unknown) }

// fail is an error of block i.
func (c Blocks) fail(i int, field, format string, args ...any) error {
	return fmt.Errorf("%s[%d]%s: %s: %w", name, i, field, fmt.Sprintf(format, args...), infer.ErrConfig)
}

// sites gives each block its sites, in the order of the layout.
func (c Blocks) sites(l *infer.Layout) ([][]string, error) {
	owner, rest := map[string]int{}, -1
	for i, b := range c {
		if b.Method == nil || len(b.Sites) == 0 {
			return nil, c.fail(i, "", "a block needs a Method and the names of its Sites, or gibbs.Rest")
		}
		for _, s := range b.Sites {
			_, known := l.Site(s)
			before, twice := owner[s]
			switch {
			case s == Rest && rest >= 0:
				return nil, c.fail(i, ".Sites", "gibbs.Rest is in block %d already", rest)
			case s == Rest:
				rest = i
				continue
			case !known:
				return nil, c.fail(i, ".Sites", "there is no site %q; the sites are %q", s, l.Names())
			case twice:
				return nil, c.fail(i, ".Sites", "the site %q is in block %d already: a site belongs to one block", s, before)
			}
			owner[s] = i
		}
	}
	out := make([][]string, len(c))
	for _, s := range l.Names() {
		i, ok := owner[s]
		if !ok {
			if i = rest; rest < 0 {
				return nil, c.fail(len(c)-1, ".Sites", "no block has the site %q: name it, or give one block gibbs.Rest", s)
			}
		}
		out[i] = append(out[i], s)
	}
	for i := range out {
		if len(out[i]) == 0 {
			return nil, c.fail(i, ".Sites", "no site is left for gibbs.Rest: leave the block out")
		}
	}
	return out, nil
}

// String lists the sites of the blocks and their methods.
func (c Blocks) String() string {
	parts := make([]string, len(c))
	for i, b := range c {
		parts[i] = fmt.Sprintf("%s: %T", strings.Join(b.Sites, " "), b.Method)
		if inner, ok := b.Method.(Blocks); ok {
			parts[i] += inner.String()
		}
	}
	return name + "{" + strings.Join(parts, "; ") + "}"
}
