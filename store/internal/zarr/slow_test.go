//go:build slow

package zarr_test

func init() { killPoints = 400 }
