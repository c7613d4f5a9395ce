// Package plot draws the figures of package diag: a reliability diagram, and kinetic temperatures with their intervals.
//
//	r, err := score.ClassCalibration(p, labels, score.Binning{})
//	err = plot.Reliability(w, r, plot.Options{Title: "ensemble"})
//
// It is apart from diag so that diag needs no drawing.
package plot
