package setup

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// debian gives a machine apt, whose archive has the libtorch of a version; installing it plants it.
func (m *fakeMachine) debian(t *testing.T, version string) {
	m.programs["apt-cache"] = func(Command) (string, error) {
		return "libtorch-dev:\n  Installed: (none)\n  Candidate: " + version + "\n  Version table:\n", nil
	}
	m.programs["apt-get"] = func(c Command) (string, error) {
		line := c.String()
		if strings.Contains(line, "libtorch-dev") {
			m.withSystemTorch(t, tree{version: "1.13.0"})
		}
		if strings.Contains(line, "libopenblas0-pthread") {
			m.chooseBLAS(t, "openblas-pthread/libblas.so.3")
		}
		if strings.Contains(line, " g++") {
			m.programs["g++"] = func(Command) (string, error) { return "g++ (Debian) 12\n", nil }
			m.programs["gcc"] = m.programs["g++"]
		}
		return "", nil
	}
}

// chooseBLAS makes a library the system's libblas.so.3.
func (m *fakeMachine) chooseBLAS(t *testing.T, file string) {
	t.Helper()
	lib := m.path("usr/lib/x86_64-linux-gnu")
	write(t, filepath.Join(lib, file), "")
	_ = os.Remove(filepath.Join(lib, "libblas.so.3"))
	require.NoError(t, os.Symlink(file, filepath.Join(lib, "libblas.so.3")))
}

func TestInstallWithApt(t *testing.T) {
	m := machine(t)
	m.library.Needed = []string{"libblas.so.3"}
	m.debian(t, "1.13.1+dfsg-4")
	report := &recorder{}
	res, err := runSetup(t, m, parts(t), Options{Report: report})
	require.NoError(t, err)
	assert.Equal(t, FromSystem, res.LibTorch.Source)
	assert.Equal(t, openBLAS, res.LibTorch.BLAS)
	assert.Equal(t, []string{
		"apt-get update -q",
		"apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 libtorch-dev libopenblas0-pthread",
	}, m.commands("apt-get"))
	assert.Contains(t, report.started, "installing libtorch-dev libopenblas0-pthread with apt-get")
}

func TestInstallTellsTheManagerNotToAsk(t *testing.T) {
	m := machine(t)
	p := newPackages(m.System, nil, silent{})
	c := p.as(nil, &managers[0], []string{"update"})
	assert.Equal(t, []string{"DEBIAN_FRONTEND=noninteractive"}, c.Env)
	c = p.as([]string{"sudo", "-n"}, &managers[0], []string{"update"})
	assert.Equal(t, "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update", c.String(), "sudo drops the environment")
}

func TestInstallWithSudo(t *testing.T) {
	m := machine(t)
	m.Geteuid = func() int { return 1000 }
	m.debian(t, "1.13.1")
	asked := false
	m.programs["sudo"] = func(c Command) (string, error) {
		if c.String() == "sudo -n true" {
			return "", errors.New("a password is required")
		}
		asked = c.Terminal && c.Args[0] == "env"
		return m.programs["apt-get"](c)
	}
	m.HTTP = &http.Client{Transport: redirect{serve(t, status(404))}}

	// Nobody can type a password, so that nothing is installed; the archive is tried instead.
	report := &recorder{}
	_, err := runSetup(t, m, parts(t), Options{Report: report})
	require.ErrorContains(t, err, "cannot be downloaded")
	assert.True(t, report.hasNote("installing packages needs root or sudo, and neither is at hand"))

	m.Terminal = true
	_, err = runSetup(t, m, parts(t), Options{})
	require.NoError(t, err)
	assert.True(t, asked)
}

func TestInstallFallsBackToTheArchive(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *fakeMachine){
		"no package manager": func(*testing.T, *fakeMachine) {},
		"no package":         func(t *testing.T, m *fakeMachine) { m.debian(t, "(none)") },
		"the package is old": func(t *testing.T, m *fakeMachine) { m.debian(t, "1.8.1-5") },
		"the manager fails":  func(t *testing.T, m *fakeMachine) { m.debian(t, "2.6.0"); m.programs["apt-get"] = fails },
		"no root and no sudo": func(t *testing.T,
			m *fakeMachine) {
			m.debian(t, "2.6.0")
			m.Geteuid = func() int { return 7 }
		},
		"brew does not do root": func(_ *testing.T, m *fakeMachine) { m.programs["brew"] = fails },
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			prepare(t, m)
			noSums(t)
			m.HTTP = &http.Client{Transport: redirect{serve(t, whole(packTree(t, tree{}), `"a"`))}}
			report := &recorder{}
			res, err := runSetup(t, m, parts(t), Options{Report: report})
			require.NoError(t, err)
			assert.Equal(t, FromDownload, res.LibTorch.Source)
			assert.True(t, report.hasNote("PyTorch's archive comes next"), "%v", report.notes)
			if name == "the package is old" {
				assert.True(t, report.hasNote("is version 1.8.1-5, and Kelvin needs 1.13 or later"))
				assert.Empty(t, m.commands("apt-get install"))
			}
		})
	}
}

// fails is a program that fails.
func fails(c Command) (string, error) {
	return "", &CommandError{Command: c.String(), Err: errors.New("exit status 100"), Output: "E: broken"}
}

func TestInstallNowhere(t *testing.T) {
	m := machine(t)
	m.GOARCH = "arm64"
	_, err := runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "libtorch cannot be installed here: no package manager")
	assert.Contains(t, remedyOf(t, err), "pip install torch")
}

func TestNoInstall(t *testing.T) {
	m := machine(t)
	m.debian(t, "1.13.1")
	_, err := runSetup(t, m, parts(t), Options{NoInstall: true})
	require.ErrorContains(t, err, "--no-install was given and there is nothing to use: no libtorch was found")
	assert.Contains(t, remedyOf(t, err), "`apt-get install libtorch-dev libopenblas0-pthread`")
	assert.Empty(t, m.commands("apt-get"))

	m.Geteuid = func() int { return 1000 }
	_, err = runSetup(t, m, parts(t), Options{NoInstall: true})
	assert.ErrorContains(t, err, "`sudo apt-get install libtorch-dev libopenblas0-pthread`")
}

func TestCUDAComesFromTheArchive(t *testing.T) {
	m := machine(t)
	m.debian(t, "2.6.0")
	m.programs["nvidia-smi"] = func(Command) (string, error) { return "CUDA Version: 12.4", nil }
	s := serve(t, whole(packTree(t, tree{cuda: true}), `"a"`))
	noSums(t)
	m.HTTP = &http.Client{Transport: redirect{s}}
	res, err := runSetup(t, m, parts(t), Options{CUDA: true})
	require.NoError(t, err)
	assert.True(t, res.LibTorch.CUDA)
	assert.Equal(t, "2.6.0-cu124", filepath.Base(res.LibTorch.Dir))
	assert.Empty(t, m.commands("apt-get"))
}

func TestOpenBLAS(t *testing.T) {
	slow := func(t *testing.T) *fakeMachine {
		m := machine(t).withSystemTorch(t, tree{})
		m.library.Needed = []string{"libblas.so.3"}
		m.chooseBLAS(t, "blas/libblas.so.3")
		return m
	}
	t.Run("is installed", func(t *testing.T) {
		m := slow(t)
		m.debian(t, "2.6.0")
		report := &recorder{}
		res, err := runSetup(t, m, parts(t), Options{Report: report})
		require.NoError(t, err)
		assert.Equal(t, openBLAS, res.LibTorch.BLAS)
		assert.Empty(t, report.warned)
	})
	t.Run("is asked for", func(t *testing.T) {
		m := slow(t)
		m.debian(t, "2.6.0")
		report := &recorder{}
		res, err := runSetup(t, m, parts(t), Options{NoInstall: true, Report: report})
		require.NoError(t, err)
		assert.Equal(t, referenceBLAS, res.LibTorch.BLAS)
		require.Len(t, report.warned, 1)
		assert.Contains(t, report.warned[0], "`apt-get install libopenblas0-pthread`")
	})
	t.Run("is not chosen", func(t *testing.T) {
		m := slow(t)
		m.debian(t, "2.6.0")
		write(t, m.path("usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3"), "")
		report := &recorder{}
		_, err := runSetup(t, m, parts(t), Options{Report: report})
		require.NoError(t, err)
		require.Len(t, report.warned, 1)
		assert.Contains(t, report.warned[0], "update-alternatives --config libblas.so.3-x86_64-linux-gnu")
		assert.Empty(t, m.commands("apt-get"), "it is there already")
	})
	t.Run("without a manager", func(t *testing.T) {
		report := &recorder{}
		_, err := runSetup(t, slow(t), parts(t), Options{Report: report})
		require.NoError(t, err)
		assert.Len(t, report.warned, 1)
	})
}

func TestOtherManagers(t *testing.T) {
	for program, c := range map[string]struct{ query, answer, install string }{
		"dnf": {"info -q libtorch-devel", "Name         : libtorch-devel\nVersion      : 2.4.1\n",
			"dnf install -y -q libtorch-devel"},
		"pacman": {"-Si python-pytorch", "Repository      : extra\nVersion         : 2.5.1-3\n",
			"pacman -S --noconfirm --needed python-pytorch"},
		"brew": {"info pytorch", "==> pytorch: stable 2.5.1 (bottled)\n", "brew install pytorch"},
	} {
		t.Run(program, func(t *testing.T) {
			m := machine(t)
			m.Geteuid = func() int { return 1000 }
			m.programs["sudo"] = func(c Command) (string, error) { return m.programs[program](c) }
			m.programs[program] = func(cmd Command) (string, error) {
				line := cmd.String()
				switch {
				case strings.Contains(line, c.query):
					return c.answer, nil
				case strings.Contains(line, c.install):
					plant(t, m.path("usr"), tree{lib: "lib64"})
					return "", nil
				case strings.Contains(line, "info"):
					return "", errors.New("no such package")
				}
				return "", nil
			}
			res, err := runSetup(t, m, parts(t), Options{})
			require.NoError(t, err)
			assert.Equal(t, FromSystem, res.LibTorch.Source)
		})
	}
}
