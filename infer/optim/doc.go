// Package optim holds gradient-based optimisers as inference methods: they climb the log posterior to its mode (MAP),
// or the log likelihood (MLE), through the same contract as the samplers. K chains are K independent starts.
//
// The update equations are written for ascent: g is the gradient of the log posterior, ℓ the learning rate LR, λ the
// weight decay, t the number of the update from 1.
package optim
