// Package formula reads the formulas of regressions, as R, brms and Bambi have them, and makes their matrices.
//
//	f, err := formula.Parse("recall ~ age + treatment*dose + s(hour) + (1 + dose | clinic)")
//	complete, _, err := table.DropMissing(f.Columns()...)
//	design, err := f.Fit(complete, formula.Options{})  // learns levels, means, standard deviations, knots
//	rows, err := design.Rows(complete)                 // X, Y, groups and smooths as numbers
//	unseen, err := design.Rows(others)                 // with what the training data had
//
// The terms are those of [Parse]; their factors are columns, and functions of columns:
//
//	I(x^2)  log(x)  exp(x)  sqrt(x)  pow(x, 3)       arithmetic, and more functions of one number
//	scale(x)  center(x)                              less the mean, and divided by the standard deviation
//	poly(x, 3)  poly(x, 3, raw = TRUE)               polynomials, orthonormal or powers
//	bs(x, df = 5)  bs(x, knots = c(1, 2))            B-splines
//	g  factor(x)  C(g, Sum)  C(g, Treatment("b"))    factors, with their contrasts
//	`a name`                                         any column
//
// Terms of their own are offset(x), smooths s(x, k = 10, by = g), Gaussian processes gp(x), monotonic effects mo(x),
// and groups (1 + x | g), (1 + x || g), (1 | g/h), (1 | g:h), (1 | mm(a, b)). The outcome may have trials(n),
// weights(w), se(s), cens(c, upper) and trunc(lb = l, ub = u), and be counts of several categories, cbind(a, b).
//
// A factor has a column for each level or for each but one, so that the columns of a term and of those that are in it
// span its means once: the matrix is that of model.matrix in R where each product has the terms that are in it. Where
// it has not, as in ~ a:b, R makes columns that determine each other, and this package does not.
//
// The package is plain Go and knows nothing of priors.
package formula
