//go:build slow

package serve_test

const onlineKills = 100
