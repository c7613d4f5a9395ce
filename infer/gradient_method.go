package infer

// GradientMethod is a method that needs nothing of the log posterior but its values and gradients, so that it can climb
// anything that has them: the optimisers. A variational method uses one to move the parameters of a distribution, whose
// objective no log posterior can express.
type GradientMethod interface {
	Method
	// BuildGradient is Build with a gradient in the place of the log posterior.
	BuildGradient(Gradient) (Transform, error)
}
