package ccompiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Setenv("KELVIN_CC", "")
	t.Setenv("CC", "")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	_, err := Find()
	require.ErrorIs(t, err, ErrNoCompiler)

	put := func(name, says string) string {
		path := filepath.Join(bin, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+says+"'\n"), 0o700))
		return path
	}
	clang := put("clang", "clang 14")
	c, err := Find()
	require.NoError(t, err)
	assert.Equal(t, Compiler{Path: clang, Args: []string{}, Version: "clang 14"}, c)
	for says, barrier := range map[string]bool{
		"cc (Debian) 12.2.0\nFree Software Foundation": true,
		"cc (Debian) 11.3.0\nFree Software Foundation": false,
		"cc of others 12.0.0":                          false,
	} {
		put("cc", says)
		c, err = Find()
		require.NoError(t, err)
		assert.Equal(t, barrier, c.Barrier, says)
	}
	t.Setenv("CC", "missing")
	_, err = Find()
	require.ErrorContains(t, err, "the compiler that CC names")
	t.Setenv("KELVIN_CC", "clang -m64")
	c, err = Find()
	require.NoError(t, err)
	assert.Equal(t, []string{"-m64"}, c.Args)
}

// Where compiled C is kept is told without making the folder, and so is why it is not kept.
func TestKeeps(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(base, "cache"))
	t.Setenv("HOME", base)
	dir, err := Keeps()
	require.NoError(t, err)
	assert.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	again, err := Keeps()
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = Keeps()
	require.ErrorContains(t, err, "others may write")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	_, err = Keeps()
	require.ErrorContains(t, err, "is no folder")
}
