// Package draws holds posterior draws: chains x draws x named sites, in float64, with statistics of each draw (log
// density, divergence, tree depth, ...). Every run of every inference method ends in a [Draws], and what follows
// inference (diagnostics, summaries, storage, prediction) starts from one.
//
// A draw is a flat vector of Dim numbers. A [Site] is one named parameter and its place in that vector, in row-major
// order of its shape. Chains may differ in length. Chains, draws and elements count from 0.
//
//	d, err := draws.New(sites, []string{"lp"}, 4)
//	err = d.Append(x, stats)              // one draw of each of the 4 chains
//	mean, err := d.Mean("w")              // over the draws of all chains
//	rows, err := d.Summary()              // mean, sd, 5%, 50%, 95% of every element
//	err = draws.FormatTable(os.Stdout, rows, nil)
//
// Values need not be finite: a chain that diverged is kept as it is. Means, standard deviations and quantiles of an
// element with a NaN are NaN; nothing is dropped in silence. How infinities count is said at each function.
//
// The package is plain Go and knows nothing of tensors.
package draws
