// Package ekf holds extended Kalman filters: a Gaussian over the parameters that is updated with one batch after
// another, each seen once. [Diag] and [Dense] are the natural-gradient filters of Ollivier (2018), whose curvature is
// the empirical Fisher matrix of the batch; [GaussNewton] linearises a forward function, and is exact for
// linear-Gaussian models.
//
// The prior is the Gaussian to start with: that of the target where it has parts, as a compiled model has, or InitSD,
// InitSDs or InitCov. Before each update the parameters may move by a random walk (TransitionSD), which forgets old
// data and follows what changes:
//
//	predict   P_pred = P + Q
//	update    P'⁻¹ = P_pred⁻¹ + ε F,   μ' = μ + ε P' g
//
// with the gradient g and the curvature F of the log likelihood at μ. The default of ε (LR) counts each datum in full,
// so that without a random walk the filter is the Bayes posterior. With K chains each has a Gaussian of its own. Sample
// draws from them in turn: draw i is of chain i mod K.
//
// [Dense] and [GaussNewton] are square-root filters: what is updated is a root S of P = S Sᵀ, which holds standard
// deviations 1/ε apart, ε the type's precision, where P itself holds variances. A wide prior with small noise needs
// that, in float32 above all.
//
// The symbols: μ mean, P covariance, Q covariance of the random walk over one update, q its standard deviation, ε (LR)
// the step, an inverse temperature.
package ekf
