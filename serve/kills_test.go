//go:build !slow

package serve_test

// onlineKills is how often a service is killed.
const onlineKills = 5
