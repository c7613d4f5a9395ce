package main

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/stretchr/testify/require"
)

// A server and a worker that run already, as other processes would: the sweep on them has the local draws.
func TestOutside(t *testing.T) {
	register()
	*draws = 200
	ctx, cancel := context.WithCancel(t.Context())
	urls, ended := make(chan string, 1), make(chan error, 2)
	dir := t.TempDir()
	go func() { ended <- cluster.Serve(ctx, "127.0.0.1:0", dir, func(url string) { urls <- url }) }()
	*url = <-urls
	go func() { ended <- cluster.Work(ctx, *url) }()
	r, err := outside(t.Context())
	cancel()
	for range 2 {
		<-ended
	}
	require.NoError(t, err)
	require.True(t, r.Identical)
	require.Zero(t, r.Kills)
}
