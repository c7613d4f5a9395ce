// Package plot draws pictures of draws and of what package diag computes, as PNG, SVG or PDF: of chains (traces, ranks,
// densities, autocorrelations, growth of the effective sample size, energies, intervals, pairs with divergences), of
// predictive checks, of calibration and of kinetic temperatures.
//
//	err := plot.Trace(w, [][]float64{d.Element(0, 0), d.Element(1, 0)}, plot.Options{Title: "mu"})
//
// Chains are rows of draws of one element, and each has a colour. Numbers must be finite. An error wraps
// [draws.ErrRange], or is that of w. It is apart from package diag so that diag needs no drawing.
package plot
