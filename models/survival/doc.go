// Package survival has what models of times until an event need beyond package dist: the log-logistic law, rates that
// are constant between breaks, and Cox's partial likelihood.
//
// Times of which some are only known to be later than the end of a study are observed as [dist.Censored]; those that
// are known to be between two visits as [dist.Binned]. Weibull, log-normal, gamma and exponential laws are those of
// dist, and [dist.LogSurvival] of any of them is the logarithm of the survival function.
package survival
