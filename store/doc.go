// Package store keeps draws on disk, in three formats that other programs read too:
//
//   - CSV as CmdStan writes it, one file per chain, written while the run goes ([CreateCSV], [WriteCSV], [ReadCSV])
//   - JSON as ArviZ's InferenceData.to_json writes it ([WriteJSON], [ReadJSON])
//   - Zarr version 2 directories as xarray reads them, which can be appended to ([CreateZarr], [WriteZarr], [ReadZarr])
//
// [Open] reads any of them:
//
//	inf, err := store.Open("out/eight_*.csv")
//	table, err := diag.Summary(inf.Posterior, diag.SummaryOptions{})
//
// What has been written comes back as the same float64 numbers, with NaN, both infinities, -0 and subnormal numbers, in
// the same sites with the same shapes. Formats that cannot say something about the draws (CSV has no shape for a site
// without elements, JSON and Zarr have no chains of different lengths) say it in a comment or an attribute of
// Kelvin's own, which other programs skip.
//
// Statistics have Kelvin's names in memory (see the constants of package diag), CmdStan's in CSV files and ArviZ's in
// JSON and Zarr. The package is plain Go and knows nothing of tensors.
//
// Sources: CmdStan User's Guide, "Stan CSV File Format"; ArviZ, "InferenceData schema specification" 1.0 and
// from_json/from_dict; Zarr storage specification version 2; xarray, "Zarr Encoding Specification".
package store
