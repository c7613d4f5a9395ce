package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoCompiler(t *testing.T) {
	bare := func(t *testing.T) *fakeMachine {
		m := machine(t).withSystemTorch(t, tree{})
		delete(m.programs, "g++")
		delete(m.programs, "gcc")
		return m
	}
	t.Run("no package manager", func(t *testing.T) {
		m := bare(t)
		_, err := runSetup(t, m, parts(t), Options{})
		require.ErrorContains(t, err, "Kelvin needs a C++ compiler: no C++ compiler (g++, c++, clang++) is on the PATH")
		assert.Contains(t, remedyOf(t, err), "`apt-get install g++`")

		m.programs["g++"] = func(Command) (string, error) { return "g++ 13\n", nil }
		m.programs["gcc"] = m.programs["g++"]
		_, err = runSetup(t, m, parts(t), Options{})
		assert.NoError(t, err)
	})
	t.Run("not allowed", func(t *testing.T) {
		m := bare(t)
		m.debian(t, "2.6.0")
		_, err := runSetup(t, m, parts(t), Options{NoInstall: true})
		assert.Contains(t, remedyOf(t, err), "`apt-get install g++`, or run set-up without --no-install")
	})
	t.Run("no rights", func(t *testing.T) {
		m := bare(t)
		m.debian(t, "2.6.0")
		m.Geteuid = func() int { return 1000 }
		_, err := runSetup(t, m, parts(t), Options{})
		require.ErrorContains(t, err, "needs root or sudo")
		assert.Contains(t, remedyOf(t, err), "`sudo apt-get install g++`")
	})
	t.Run("on a Mac", func(t *testing.T) {
		m := bare(t)
		m.GOOS = "darwin"
		_, err := runSetup(t, m, parts(t), Options{})
		assert.Contains(t, remedyOf(t, err), "xcode-select --install")
	})
	t.Run("installed", func(t *testing.T) {
		m := bare(t)
		m.debian(t, "2.6.0")
		report := &recorder{}
		res, err := runSetup(t, m, parts(t), Options{Report: report})
		require.NoError(t, err)
		assert.Equal(t, "g++", res.Compiler.CXX)
		assert.True(t, report.hasNote("set-up installs g++"), "%v", report.notes)
	})
}

func TestCompilerChoice(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	m.programs["g++"] = fails
	_, err := runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "the C++ compiler g++ cannot build a C++17 program")
	assert.ErrorContains(t, err, "E: broken")
	assert.Contains(t, remedyOf(t, err), "$CXX")

	// Another one works, which Go does not know of.
	m.programs["clang++"] = func(Command) (string, error) { return "clang version 16\n", nil }
	m.programs["clang"] = m.programs["clang++"]
	report := &recorder{}
	res, err := runSetup(t, m, parts(t), Options{Report: report})
	require.NoError(t, err)
	assert.Equal(t, "clang++", res.Compiler.CXX)
	assert.Equal(t, []string{"CXX=clang++", "CC=clang"}, res.Compiler.Env)
	assert.Contains(t, report.warned[0], "`go env -w CXX=clang++ CC=clang`")

	m.env["CXX"] = "icpx"
	_, err = runSetup(t, m, parts(t), Options{})
	assert.ErrorContains(t, err, "there is no compiler $CXX = icpx")

	m.env["CXX"] = "ccache clang++"
	m.programs["ccache"] = m.programs["clang++"]
	res, err = runSetup(t, m, parts(t), Options{})
	require.NoError(t, err)
	assert.Equal(t, "ccache clang++", res.Compiler.CXX)
}

func TestCgoSwitchedOff(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	t.Setenv("CGO_ENABLED", "0")
	_, err := runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "cgo is switched off (CGO_ENABLED=0)")
	assert.Contains(t, remedyOf(t, err), "go env -u CGO_ENABLED")
	t.Setenv("CGO_ENABLED", "1")
	_, err = runSetup(t, m, parts(t), Options{})
	assert.NoError(t, err)
}
