// Package large reads columns that do not fit in memory, a few rows at a time, from .npy files of NumPy.
//
//	table, err := large.Open(map[string]string{"x": "x.npy", "y": "y.npy"}) // shapes [N, 3] and [N], say
//	defer table.Close()
//	order, err := large.NewShuffle(table.Rows(), seed, epoch) // a permutation of the rows, without an array of them
//	x, err := large.Gather[float64](table, "x", []int{order.At(0), order.At(1)})
//
// Package data/batch makes batches of tensors of a [Table] for a run; this one is plain Go.
//
// A column is a file: format 1.0, 2.0 or 3.0 of .npy, little-endian float64, float32, int64, int32 or uint8, in the
// order of C, the first dimension counting the rows (numpy.lib.format is the description). In NumPy,
//
//	np.save("x.npy", np.ascontiguousarray(x))
//
// writes one. Here [Create] does, row by row.
//
// # Reading, not mapping
//
// Rows are read with pread; no file is mapped. Where a mapped file shrinks, the next access ends the process with a
// signal, and a check of the size before it comes too early. A read that finds too little is an error. The system's
// cache serves both alike, and what was read does not count as memory of the process. A file that is replaced, by a
// rename, is read to its end as it was when it was opened.
//
// Errors of files are *[data.Error]: they name the file, the column, and what was expected.
package large
