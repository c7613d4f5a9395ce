// Package method is for those who write an inference method. A method of one gradient for each update is an
// [Algorithm]: a struct for its states, which embeds [State], and its equation: a Program of operations on elements,
// from which loops, passes over memory and updates with tensors are made, or, outside Kelvin and for what elements
// cannot do, a Step with tensors in the style of [torch.Must]. [Build] adds the rest: checked schedules, gradients at
// temperature T, random streams, chains that are held, checkpoints, kinetic temperatures and notes about the run.
//
//	func (c SGLRW) Build(target infer.Target) (infer.Transform, error) {
//		check := &method.Checks{Name: "sgmcmc.SGLRW"}
//		check.LR(c.LR, "…")
//		check.Schedule("Temperature", &c.Temperature, 1, false)
//		return method.Build(check, target, method.Algorithm[SGLRWState]{
//			LR: c.LR, Temperature: c.Temperature,
//			Step: func(s, next *SGLRWState, m *method.Move) { … },
//		})
//	}
//
// Other methods use the parts: [CheckValue], [StateAs], [Hold], [Keep], [NewInfo], [DrawGaussians] and the like.
package method
