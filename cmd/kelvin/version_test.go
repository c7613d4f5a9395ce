package main

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// What a binary knows of itself: of a release, a checkout, a checkout with changes, a tool of another module.
func TestIdentify(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	kelvin := debug.Module{Path: setup.Kelvin, Version: "v0.1.0"}
	for _, c := range []struct {
		info            *debug.BuildInfo
		version, commit string
	}{
		{nil, "(devel)", "unknown"},
		{&debug.BuildInfo{Main: debug.Module{Path: setup.Kelvin}}, "(devel)", "unknown"},
		{&debug.BuildInfo{Main: kelvin}, "v0.1.0", "unknown"},
		{&debug.BuildInfo{Main: kelvin, Settings: []debug.BuildSetting{revision}}, "v0.1.0", "abc"},
		{&debug.BuildInfo{Main: kelvin, Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
			"v0.1.0", "abc, with changes"},
		// The revision is that of the other module.
		{&debug.BuildInfo{Main: debug.Module{Path: "example.com/service"}, Deps: []*debug.Module{&kelvin},
			Settings: []debug.BuildSetting{revision}}, "v0.1.0", "unknown"},
	} {
		version, commit := identify(c.info)
		assert.Equal(t, []string{c.version, c.commit}, []string{version, commit})
	}
}

// Outside of a module there is no libtorch to tell of, and that is no failure.
func TestVersionOutsideOfAModule(t *testing.T) {
	a, out, _ := bare(t)
	t.Chdir(t.TempDir())
	assert.Equal(t, exitOK, a.run(context.Background(), []string{"version"}))
	assert.Contains(t, out.String(), "libtorch not set up here\n")
	assert.Equal(t, exitUsage, a.run(context.Background(), []string{"version", "now"}))
}
