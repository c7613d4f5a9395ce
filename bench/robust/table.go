package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// near is how many times the gradients of the best method are near it.
const near = 1.25

// right says that at most one run of 20 failed, so that what the others cost means something.
func (r row) right() bool { return 20*r.Failed <= r.Seeds }

// cost is the gradients of an effective draw of a method that is right, else infinite.
func (r row) cost() float64 {
	if !r.right() || r.GradientsPerESS == nil {
		return math.Inf(1)
	}
	return *r.GradientsPerESS
}

// best is the least cost of the rows of a target; infinite where none is right.
func best(rows []row) float64 {
	least := math.Inf(1)
	for _, r := range rows {
		least = math.Min(least, r.cost())
	}
	return least
}

// loses says that a method is not near the best, or fails.
func (r row) loses(best float64) bool { return !r.right() || r.cost() > near*best }

// byTarget cuts rows, which follow each other, into those of each target.
func byTarget(rows []row) [][]row {
	var out [][]row
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Name == rows[0].Name {
			n++
		}
		out, rows = append(out, rows[:n]), rows[n:]
	}
	return out
}

// line is the form of a line of the table. The columns have fixed widths, because targets are written as they end.
const line = "%-40s  %-11s  %7s  %9s  %18s  %12s %s\n"

func writeHeading(w io.Writer) {
	fmt.Fprintf(w, line, "target", "method", "failed", "warm-up", "an effective draw", "of the best", "")
}

// writeTarget writes the rows of one target. A method that loses has a star.
func writeTarget(w io.Writer, rows []row, verbose bool) {
	least := best(rows)
	for _, r := range rows {
		ratio, star := "", ""
		if c := r.cost() / least; c-c == 0 {
			ratio = fmt.Sprintf("%.2f", c)
		}
		if r.loses(least) {
			star = "*"
		}
		fmt.Fprintf(w, line, r.Name, r.Method, fmt.Sprintf("%d/%d", r.Failed, r.Seeds), show(r.WarmupGradients),
			show(r.GradientsPerESS), ratio, star)
		for _, why := range r.why {
			if verbose {
				fmt.Fprintf(w, "    %s\n", why)
			}
		}
	}
}

func show(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *v)
}

// standing is how a method stands over all targets.
type standing struct {
	method       string
	lost, slower int        // targets on which it fails, and those on which it is right and not near the best
	ratios       [3]float64 // geometric means of its cost over the best's, Stan's and nutpie's, where both are right
}

// stand compares the methods over the targets.
func stand(rows []row) []standing {
	var out []standing
	targets := byTarget(rows)
	for _, r := range rows {
		if slices.ContainsFunc(out, func(s standing) bool { return s.method == r.Method }) {
			continue
		}
		s := standing{method: r.Method}
		for i := range s.ratios {
			s.ratios[i] = geometricMean(targets, r.Method, i)
		}
		for _, own := range targets {
			least := best(own)
			for _, o := range own {
				switch {
				case o.Method != r.Method:
				case !o.right():
					s.lost++
				case o.GradientsPerESS != nil && o.loses(least):
					s.slower++
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// geometricMean is that of a method's cost over a peer's, or over the best's for 0, on targets where both are right;
// NaN where there are none.
func geometricMean(targets [][]row, method string, over int) float64 {
	sum, n := 0.0, 0.0
	for _, rows := range targets {
		own, other := math.Inf(1), best(rows)
		if over > 0 {
			other = math.Inf(1)
		}
		for _, r := range rows {
			if r.Method == method {
				own = r.cost()
			}
			if over > 0 && r.Method == peerMethods[over-1].name {
				other = r.cost()
			}
		}
		if ratio := math.Log(own / other); ratio-ratio == 0 {
			sum, n = sum+ratio, n+1
		}
	}
	return math.Exp(sum / n)
}

// writeStanding writes how the methods stand.
func writeStanding(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nmethod\tfails on\tnot near the best on\tof the best\tof Stan\tof nutpie")
	for _, s := range stand(rows) {
		fmt.Fprintf(w, "%s\t%d\t%d", s.method, s.lost, s.slower)
		for _, v := range s.ratios {
			if v != v {
				fmt.Fprint(w, "\t-")
			} else {
				fmt.Fprintf(w, "\t%.2f", v)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
