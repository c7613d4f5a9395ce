//go:build slow && linux

package setup

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// building is set for the child process: the folder in which it compiles.
const building = "KELVIN_SETUP_BUILDING"

// compiles is how often the compile is killed.
const compiles = 10

// Set-up gets SIGKILL at a random moment of its C++ compile, alone or with the compiler. The next one starts it anew
// and comes to its end; nothing that was half made is taken for done.
func TestKilledCompile(t *testing.T) {
	if dir := os.Getenv(building); dir != "" {
		_, err := buildOnce(context.Background(), Host(false), compileOrder(dir))
		require.NoError(t, err)
		return
	}
	dir := t.TempDir()
	// A module in the place of gotch, whose C++ takes some seconds to compile.
	write(t, filepath.Join(dir, "copy/go.mod"), "module github.com/sugarme/gotch\n\ngo 1.20\n")
	write(t, filepath.Join(dir, "copy/libtch/lib.go"), "package libtch\n\n// int kelvin_number();\nimport \"C\"\n\n"+
		"// Number is 7.\nfunc Number() int { return int(C.kelvin_number()) }\n")
	write(t, filepath.Join(dir, "copy/libtch/lib.cpp"), "#include <regex>\n#include <string>\n"+
		"extern \"C\" int kelvin_number() {\n"+strings.Repeat(
		"  { std::regex r(\"a+b\"); std::wregex w(L\"a+b\"); if (std::regex_match(\"b\", r)) return 1; }\n", 10)+
		"  return 7;\n}\n")
	write(t, filepath.Join(dir, "copy/ts/ts.go"),
		"package ts\n\nimport \"github.com/sugarme/gotch/libtch\"\n\n"+
			"// Seven is 7.\nfunc Seven() int { return libtch.Number() }\n")
	write(t, filepath.Join(dir, "copy/probe/main.go"),
		"package main\n\nimport \"github.com/sugarme/gotch/ts\"\n\nfunc main() { println(ts.Seven()) }\n")
	cache := filepath.Join(dir, "cache")
	require.NoError(t, os.Setenv("GOCACHE", cache))
	defer func() { require.NoError(t, os.Unsetenv("GOCACHE")) }()

	run := func() *exec.Cmd {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledCompile$")
		child.Env = append(os.Environ(), building+"="+dir)
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return child
	}
	rng := rand.New(rand.NewPCG(9, 10))
	killed := 0
	for k := range compiles {
		child := run()
		require.NoError(t, child.Start())
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		who := child.Process.Pid
		if k%2 == 0 {
			who = -who // the compiler too
		}
		require.NoError(t, syscall.Kill(who, syscall.SIGKILL))
		if err := child.Wait(); err != nil {
			killed++
		}
		if k%2 == 1 { // the compiler was left alone; it goes on for a while
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL)
		}
		if exists(compileOrder(dir).record()) { // it was done before the kill, or a compiler that was left alone did it
			built, err := buildOnce(context.Background(), Host(false), compileOrder(dir))
			require.NoError(t, err)
			require.False(t, built, "what is not compiled is noted as done")
			require.NoError(t, os.RemoveAll(compileOrder(dir).Record))
			require.NoError(t, exec.Command("go", "clean", "-cache").Run())
		}
	}
	require.Greater(t, killed, compiles/2)
	out, err := run().CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.FileExists(t, compileOrder(dir).record())
	built, err := buildOnce(context.Background(), Host(false), compileOrder(dir))
	require.NoError(t, err)
	assert.False(t, built, "it is done")
	cmd := exec.Command("go", "run", "./probe")
	cmd.Dir, cmd.Env = filepath.Join(dir, "copy"), append(os.Environ(), "GOWORK=off")
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "7\n", string(out))
	t.Logf("seen: %d C++ compiles killed, the next one is whole", killed)
}

func compileOrder(dir string) BuildOrder {
	return BuildOrder{Project: &Project{Dir: dir, Module: "example.com/user", GoVersion: "go1.26.0"},
		Copy: filepath.Join(dir, "copy"), Compiler: Compiler{CXX: "g++", Env: []string{"CXX=g++"}},
		Record: filepath.Join(dir, "built"), Report: silent{}}
}
