// Package cluster runs the chains of a run, and the cells of a sweep, as tasks on many processes and machines, over
// NATS JetStream. The draws are those of the local run, bit for bit:
//
//	cluster.Register("schools", func(params []byte, data infer.Batch) (cluster.Spec, error) {
//		program, err := ppl.Compile(schools, data)
//		return cluster.Spec{Program: program, Method: hmc.NUTS{}}, err
//	})
//	draws, err := cluster.Sample(ctx, program, hmc.NUTS{}, cluster.Options{Job: "schools"}) // on this machine
//
// Without a URL, [Sample] starts a NATS server inside the process, and a worker. With one, tasks go to that server,
// and workers are other processes of the same binary that call [Work]. No code travels: a worker runs only the jobs
// that its binary has registered.
//
// # Tasks
//
// A task is a group of chains (infer.Options.Group). Groups of a local run are independent of each other, and chain k
// reads its stream (Seed, FirstChain + k) wherever it runs, so that a task has the draws of its group in the local run
// with the same Group. With Group 0, chains of hmc.HMC and hmc.NUTS are a task each, which are the same bits where the
// gradient is compiled; elsewhere the local run needs Group 1 for them. The chains of any other method are one task
// together, because one batch of tensors rounds differently from several. Set Group to spread them.
//
// # Failures
//
// A task is acknowledged when its result is written. A worker that dies stops its heartbeats, and after
// [Options].AckWait the task goes to another worker, which goes on from the last checkpoint. Results are written once,
// by compare-and-set; a worker that has lost its task is stopped at its next checkpoint. A task that fails is tried
// [Options].Tries times and then reported as a [TaskError], while the others go on.
//
// # Identity
//
// Build, libtorch, kind of processor, threads, data and method are compared before a task is run. A worker where one
// differs refuses the task, and [MismatchError] says which.
package cluster
