// Package cluster runs the chains of a run as tasks of many machines, over NATS JetStream.
//
// [Sample] has the arguments of infer.Sample. A task names a model that both binaries have registered ([Register]), the
// hash of the data, a method, a seed and chains; the draws are those of a local run, bit for bit. [Work] is the worker.
// Without a URL a server runs in the same process, so that nothing has to be installed.
//
//   - Tasks are in a stream with explicit acknowledgements. A worker that is not heard for 5 s has lost its task, and
//     another goes on from the last checkpoint in the object store.
//   - A result is written once: who comes back from the dead overwrites nothing.
//   - A task that ends with an error or a panic is tried three times; the others go on.
//   - A worker of another build, another libtorch or other data refuses the job and says which differs.
//
// See docs/cluster.md.
package cluster
