package setup

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGo answers for the command go and keeps what it was asked.
type fakeGo struct {
	stale    string
	fail     map[string]error // by the last argument
	commands []Command
}

func (g *fakeGo) system() *System {
	return &System{Run: func(_ context.Context, c Command) (string, error) {
		g.commands = append(g.commands, c)
		if err := g.fail[c.Args[len(c.Args)-1]]; err != nil {
			return "", err
		}
		if c.Args[0] == "list" && c.Args[len(c.Args)-1] == "./..." {
			return Kelvin + "/draws\n\n" + Kelvin + "/infer\n", nil
		}
		if c.Args[0] == "list" {
			return g.stale + "\n", nil
		}
		return "", nil
	}}
}

// builds returns the packages that were built.
func (g *fakeGo) builds() []string {
	var found []string
	for _, c := range g.commands {
		if c.Args[0] == "build" {
			found = append(found, strings.Join(c.Args[1:], " "))
		}
	}
	return found
}

func order(t *testing.T, module string, kelvin bool, report Reporter) BuildOrder {
	t.Helper()
	return BuildOrder{
		Project: &Project{Dir: t.TempDir(), Module: module, GoVersion: "go1.26.0"}, Copy: "/cache/gotch/a", Kelvin: kelvin,
		Compiler: Compiler{CXX: "clang++", Env: []string{"CXX=clang++"}}, Record: filepath.Join(t.TempDir(),
			"built"), Report: report,
	}
}

func TestBuildOnce(t *testing.T) {
	ctx := context.Background()
	g := &fakeGo{stale: "false"}
	o := order(t, "example.com/user", true, silent{})
	built, err := buildOnce(ctx, g.system(), o)
	require.NoError(t, err)
	assert.True(t, built)
	assert.Equal(t, []string{Kelvin + "/torch"}, g.builds())
	assert.Equal(t, o.Project.Dir, g.commands[0].Dir)
	assert.Equal(t, []string{"CXX=clang++"}, g.commands[0].Env)

	built, err = buildOnce(ctx, g.system(), o)
	require.NoError(t, err)
	assert.False(t, built, "the record says so, and Go has it still")

	g.stale = "true"
	built, err = buildOnce(ctx, g.system(), o)
	require.NoError(t, err)
	assert.True(t, built, "Go's build cache was emptied")

	g.stale = "false"
	o.Project.GoVersion = "go1.27.0"
	built, err = buildOnce(ctx, g.system(), o)
	require.NoError(t, err)
	assert.True(t, built, "another Go")
}

func TestBuildWhatThereIs(t *testing.T) {
	ctx := context.Background()
	g := &fakeGo{}
	o := order(t, "example.com/user", false, silent{})
	_, err := buildOnce(ctx, g.system(), o)
	require.NoError(t, err)
	assert.Equal(t, []string{"github.com/sugarme/gotch/ts"}, g.builds())
	assert.Equal(t, o.Copy, g.commands[0].Dir, "the module does not know gotch")
	assert.True(t, slices.Contains(g.commands[0].Env, "GOWORK=off"))

	g = &fakeGo{}
	_, err = buildOnce(ctx, g.system(), order(t, Kelvin, true, silent{}))
	require.NoError(t, err)
	assert.Equal(t, []string{Kelvin + "/torch", Kelvin + "/draws " + Kelvin + "/infer"}, g.builds())
}

func TestBuildFails(t *testing.T) {
	ctx := context.Background()
	failed := &CommandError{Command: "go build", Err: errors.New("exit status 1"),
		Output: "kelvin.cpp:3:1: error: expected ';'"}
	g := &fakeGo{fail: map[string]error{Kelvin + "/torch": failed}}
	o := order(t, Kelvin, true, silent{})
	_, err := buildOnce(ctx, g.system(), o)
	require.ErrorContains(t, err, Kelvin+"/torch does not build")
	assert.ErrorContains(t, err, "kelvin.cpp:3:1")
	assert.Contains(t, remedyOf(t, err), SetupCommand+" -v")
	assert.NoFileExists(t, o.record())

	failed.Output = "g++: fatal error: Killed signal terminated program cc1plus"
	_, err = buildOnce(ctx, g.system(), o)
	assert.Contains(t, remedyOf(t, err), "ran out of memory")

	// A package of the checkout that is in work does not stop set-up.
	report := &recorder{}
	g = &fakeGo{fail: map[string]error{Kelvin + "/infer": failed}}
	_, err = buildOnce(ctx, g.system(), order(t, Kelvin, true, report))
	require.NoError(t, err)
	require.Len(t, report.warned, 1)
	assert.Contains(t, report.warned[0], "not all packages of this checkout build")
}

// What was compiled is linked and run before set-up says that Kelvin is ready.
func TestBuildRunsAProgram(t *testing.T) {
	ctx := context.Background()
	probe := "github.com/sugarme/gotch/probe"
	for _, kelvin := range []bool{true, false} {
		g := &fakeGo{}
		o := order(t, "example.com/user", kelvin, silent{})
		_, err := buildOnce(ctx, g.system(), o)
		require.NoError(t, err)
		last := g.commands[len(g.commands)-1]
		dir, env := o.dir()
		assert.Equal(t, Command{Name: "go", Args: []string{"run", probe}, Dir: dir, Env: env}, last)
	}
	for output, remedy := range map[string]string{
		"probe: error while loading shared libraries: libcudart.so.13: cannot open shared object file: No such file": "has " +
			"libcudart.so.13 (",
		"/usr/bin/ld: warning: libcupti.so.12, needed by /x/torch/lib/libtorch_cpu.so, not found (try using -rpath)": "has " +
			"libcupti.so.12 (",
		"/usr/bin/ld: kelvin.o: undefined reference to `c10::Error::Error(std::__cxx11::basic_string)'": "libtorch's " +
			"libraries are complete and belong to its headers",
	} {
		g := &fakeGo{fail: map[string]error{probe: &CommandError{Command: "go run", Err: errors.New("exit status 1"),
			Output: output}}}
		o := order(t, Kelvin, true, silent{})
		_, err := buildOnce(ctx, g.system(), o)
		require.ErrorContains(t, err, "a program with this libtorch does not link or does not run")
		assert.ErrorContains(t, err, output)
		assert.Contains(t, remedyOf(t, err), remedy)
		assert.NoFileExists(t, o.record(), "the next set-up tries again")
	}
}

func TestRunCommand(t *testing.T) {
	ctx := context.Background()
	report := &recorder{}
	out, err := runCommand(ctx, Command{Name: "sh", Args: []string{"-c", "echo out; echo $WHO >&2"},
		Env: []string{"WHO=me"}, Log: &report.log})
	require.NoError(t, err)
	assert.Equal(t, "out\n", out)
	assert.ElementsMatch(t, []string{"out", "me"}, strings.Fields(report.log.String()))

	_, err = runCommand(ctx, Command{Name: "sh", Args: []string{"-c", "seq 100 >&2; exit 3"}})
	require.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "(60 lines before)\n61\n")
	assert.ErrorContains(t, err, "\n100")

	_, err = runCommand(ctx, Command{Name: "no-such-program-of-kelvin"})
	assert.True(t, isNotFound(err))

	stopped, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = runCommand(stopped, Command{Name: "sleep", Args: []string{"60"}})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}
