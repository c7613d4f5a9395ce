// Package store keeps draws on disk, in three formats that other programs read too:
//
//   - CSV as CmdStan writes it, one file per chain ([CSVSink], [WriteCSV])
//   - JSON as ArviZ's InferenceData.to_json writes it ([WriteJSON])
//   - Zarr version 2 directories as xarray reads them ([ZarrSink], [WriteZarr])
//
// [Open] reads any of them; the content decides:
//
//	inf, err := store.Open("out/eight_*.csv")
//	table, err := diag.Summary(inf.Posterior, diag.SummaryOptions{})
//
// A sink writes draws while a run makes them, and a run that resumes from a checkpoint resumes its files.
//
// Numbers come back as the same float64, with NaN, both infinities, -0 and subnormal numbers, in the same sites with
// the same shapes. What a format cannot say about the draws stands in comments or attributes of Kelvin's own, which
// other programs skip: shapes of empty sites, lengths of chains, attributes and notes of [draws.Draws].
//
// Files carry checksums. A file that was damaged or edited is an [ErrFormat], not a wrong number. Readers take memory
// in proportion to the bytes that are there; see [Limits].
//
// Statistics have the names of package draws in memory, CmdStan's in CSV files and ArviZ's in JSON and Zarr. The
// package is plain Go and does not use tensors.
//
// Sources: CmdStan User's Guide, "Stan CSV File Format"; ArviZ, "InferenceData schema specification" 1.0 and
// from_json/from_dict; Zarr storage specification version 2; xarray, "Zarr Encoding Specification".
package store
