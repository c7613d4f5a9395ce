package data

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// SplitOptions are the options of [Table.Split].
type SplitOptions struct {
	// Test is the part of the rows that are for testing, in (0, 1).
	Test float64
	Seed uint64
	// Stratify is a column whose values are as frequent in both parts, up to one row for each value: the outcome of a
	// classifier. "" splits without.
	Stratify string
}

// Split parts the rows at random into training and test data, Test·n of them, rounded, in the second; each part has at
// least one. Rows keep their order. The split depends on the seed and the rows alone (PCG, Fisher-Yates). Stratified,
// each value has Test times its rows in the test data, rounded down, and the largest remainders one more (Hamilton's
// method); a value with a single row and a missing value are errors.
func (t *Table) Split(o SplitOptions) (train, test *Table, err error) {
	if !(o.Test > 0 && o.Test < 1) {
		return nil, nil, t.wrong(-1, "", "", fmt.Sprintf("SplitOptions.Test is %v: it must be between 0 and 1", o.Test))
	}
	if t.n < 2 {
		return nil, nil, t.wrong(-1, "", "", fmt.Sprintf("%d rows cannot be split: two are needed", t.n))
	}
	strata := [][]int{make([]int, t.n)}
	for i := range strata[0] {
		strata[0][i] = i
	}
	if o.Stratify != "" {
		if strata, err = t.strata(o.Stratify); err != nil {
			return nil, nil, err
		}
	}
	total := min(max(int(math.Round(o.Test*float64(t.n))), 1), t.n-1)
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	in := make([]bool, t.n)
	for i, k := range shares(strata, total) {
		rows := strata[i]
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		for _, r := range rows[:k] {
			in[r] = true
		}
	}
	var parts [2][]int
	for r := range t.n {
		if in[r] {
			parts[1] = append(parts[1], r)
		} else {
			parts[0] = append(parts[0], r)
		}
	}
	return t.take(parts[0]), t.take(parts[1]), nil
}

// strata are the rows of each value of a column.
func (t *Table) strata(name string) ([][]int, error) {
	c, err := t.get(name)
	if err != nil {
		return nil, err
	}
	rows := map[string][]int{}
	for r := range t.n {
		if c.absent(r) {
			return nil, t.wrong(r, name, "", "it is missing: rows cannot be stratified by it")
		}
		rows[c.text(r)] = append(rows[c.text(r)], r)
	}
	var out [][]int
	for _, of := range rows {
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	for _, of := range out {
		if len(of) < 2 {
			return nil, t.wrong(of[0], name, c.text(of[0]), "it is the only row of this value: a stratum needs two")
		}
	}
	return out, nil
}

// text is the value of a row.
func (c column) text(row int) string {
	if c.factor {
		return c.levels[c.codes[row]]
	}
	return format(c.numbers[row])
}

// shares is how many rows of each stratum are among total ones.
func shares(strata [][]int, total int) []int {
	n := 0
	for _, s := range strata {
		n += len(s)
	}
	out, rest, order := make([]int, len(strata)), total, make([]int, len(strata))
	for i, s := range strata {
		out[i] = total * len(s) / n
		rest -= out[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(total*len(strata[b])%n, total*len(strata[a])%n)
	})
	for _, i := range order[:rest] {
		out[i]++
	}
	return out
}
