package main

import (
	"fmt"
	"math"
	"strings"
)

// claim is what the paper says, and what was found.
type claim struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Holds bool   `json:"holds"`
	Seen  string `json:"seen"`
}

// claims compares the results with the paper's: what trajectories show that bounce from the walls, and so fill the box
// of the prior, and what those that are refused there show, which do not.
func (r *results) claims() []claim {
	all := append(r.curveClaims(false), r.curveClaims(true)...)
	if r.Settings.Evidences == 0 {
		return all
	}
	mean, sd := r.factor()
	evidence := claim{Name: "C4.5", Text: "the evidence prefers M1 to M3"}
	evidence.Holds = mean+2*sd/math.Sqrt(float64(r.Settings.Evidences)) < 0
	evidence.Seen = fmt.Sprintf("D%d: log Bayes factor of M3 against M1 %.1f ± %.1f", r.Settings.EvidenceData, mean, sd)
	return append(all, evidence)
}

// curveClaims are those of the curves of one sampler.
func (r *results) curveClaims(refused bool) (all []claim) {
	how := ""
	if refused {
		how = ", trajectories being refused at the walls"
	}
	bayes := claim{Name: "C4.1", Text: "M3 has a lower test loss at T = 1 than at minima of its loss" + how, Holds: true}
	best := claim{Name: "C4.2", Text: "the best temperature of M3 is not the lowest, that of M3* is" + how, Holds: true}
	hot := claim{Name: "C4.3", Text: "at the highest temperature the loss of M3 is above log 10, reached by and by" + how,
		Holds: true}
	ladder := claim{Name: "C4.4", Text: "a geometric ladder has nearly equal swap rates" + how, Holds: true}
	seen := map[*claim][]string{}
	say := func(c *claim, holds bool, format string, args ...any) {
		c.Holds = c.Holds && holds
		seen[c] = append(seen[c], fmt.Sprintf(format, args...))
	}
	for i, c := range r.Curves {
		if c.Refused != refused {
			continue
		}
		where := fmt.Sprintf("%s D%d", c.Network, c.Data)
		lowest, one := 0, 0
		least, most := math.Inf(1), math.Inf(-1)
		for k, g := range c.Rungs {
			if g.Test.Gibbs < c.Rungs[lowest].Test.Gibbs {
				lowest = k
			}
			if math.Abs(math.Log(g.Temperature)) < math.Abs(math.Log(c.Rungs[one].Temperature)) {
				one = k
			}
			if g.Swapped >= 0 {
				least, most = math.Min(least, g.Swapped), math.Max(most, g.Swapped)
			}
		}
		say(&best, (lowest > 0) == (c.Network == "M3"), "%s T = %.3g", where, c.Rungs[lowest].Temperature)
		// Rates within a factor of two count as nearly equal.
		say(&ladder, most < 2*least, "%s %.2f to %.2f", where, least, most)
		if c.Network != "M3" {
			continue
		}
		say(&bayes, c.Rungs[one].Test.Gibbs < r.Descended[i].Test.Gibbs, "%s %.3f against %.3f", where,
			c.Rungs[one].Test.Gibbs, r.Descended[i].Test.Gibbs)
		top, jump := c.Rungs[len(c.Rungs)-1], 0.0
		for k := 1; k < len(c.Rungs); k++ {
			jump = math.Max(jump, c.Rungs[k].Test.Gibbs-c.Rungs[k-1].Test.Gibbs)
		}
		say(&hot, top.Test.Gibbs > math.Log(10), "%s %.2f at T = %.3g, the largest step of the curve %.2f", where,
			top.Test.Gibbs, top.Temperature, jump)
	}
	for _, c := range []*claim{&bayes, &best, &hot, &ladder} {
		if c.Seen = strings.Join(seen[c], "; "); c.Seen != "" {
			all = append(all, *c)
		}
	}
	return all
}
