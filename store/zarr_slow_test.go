//go:build slow

package store

func init() { killPoints, sigkills = 400, 200 }
