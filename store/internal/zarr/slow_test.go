//go:build slow

package zarr_test

func init() { killPoints, sigkills = 400, 200 }
