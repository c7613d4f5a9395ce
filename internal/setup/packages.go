package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// manager is a package manager and what its distribution calls what Kelvin needs.
type manager struct {
	program  string
	update   []string             // arguments that refresh the lists; nil when it does so itself
	install  []string             // arguments before the names of packages
	env      []string             // environment
	libtorch [][]string           // alternatives; the first package of each tells the version
	compiler []string             // packages with a C++ compiler; nil when it cannot install one
	openBLAS []string             // packages with OpenBLAS, where libtorch does not bring its own
	query    func(string) Command // prints what is known of a package
	version  *regexp.Regexp       // finds the version in that
	asUser   bool                 // refuses to run as root
}

// managers are the package managers that set-up knows, in the order in which it looks for them.
var managers = []manager{
	{
		program:  "apt-get",
		update:   []string{"update", "-q"},
		install:  []string{"install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"},
		env:      []string{"DEBIAN_FRONTEND=noninteractive"},
		libtorch: [][]string{{"libtorch-dev", "libopenblas0-pthread"}},
		compiler: []string{"g++"},
		openBLAS: []string{"libopenblas0-pthread"},
		query:    func(name string) Command { return Command{Name: "apt-cache", Args: []string{"policy", name}} },
		version:  regexp.MustCompile(`(?m)^\s*Candidate:\s*(\S+)`),
	},
	{
		program:  "dnf",
		install:  []string{"install", "-y", "-q"},
		libtorch: [][]string{{"python3-torch-devel"}, {"pytorch-devel"}, {"libtorch-devel"}, {"python3-torch"}},
		compiler: []string{"gcc-c++"},
		query:    func(name string) Command { return Command{Name: "dnf", Args: []string{"info", "-q", name}} },
		version:  regexp.MustCompile(`(?m)^Version\s*:\s*(\S+)`),
	},
	{
		program:  "pacman",
		update:   []string{"-Sy", "--noconfirm"},
		install:  []string{"-S", "--noconfirm", "--needed"},
		libtorch: [][]string{{"python-pytorch"}},
		compiler: []string{"gcc"},
		query:    func(name string) Command { return Command{Name: "pacman", Args: []string{"-Si", name}} },
		version:  regexp.MustCompile(`(?m)^Version\s*:\s*(\S+)`),
	},
	{
		program:  "brew",
		install:  []string{"install"},
		env:      []string{"HOMEBREW_NO_AUTO_UPDATE=1", "NONINTERACTIVE=1"},
		libtorch: [][]string{{"pytorch"}},
		query:    func(name string) Command { return Command{Name: "brew", Args: []string{"info", name}} },
		version:  regexp.MustCompile(`stable (\d[^\s,]*)`),
		asUser:   true,
	},
}

// The reasons for which set-up installs nothing.
var (
	errNoManager = errors.New("no package manager that Kelvin knows (apt-get, dnf, pacman, brew) is on the PATH")
	errNoRights  = errors.New("installing packages needs root or sudo, and neither is at hand")
	errNoPackage = errors.New("the package manager has none that Kelvin can use")
)

// packages installs packages through the system's package manager.
type packages struct {
	sys     *System
	log     io.Writer
	report  Reporter
	updated bool
}

func newPackages(sys *System, log io.Writer, report Reporter) *packages {
	return &packages{sys: sys, log: log, report: report}
}

// manager returns the system's package manager.
func (p *packages) manager() (*manager, error) {
	for i := range managers {
		if p.sys.has(managers[i].program) {
			return &managers[i], nil
		}
	}
	return nil, errNoManager
}

// rights returns what to put before a command so that it may install packages. With ask, sudo may ask for a password
// when somebody can answer.
func (p *packages) rights(ctx context.Context, m *manager, ask bool) (prefix []string, err error) {
	switch {
	case m.asUser && p.sys.Geteuid() == 0:
		return nil, fmt.Errorf("%s does not install packages as root", m.program)
	case m.asUser || p.sys.Geteuid() == 0:
		return nil, nil
	case !p.sys.has("sudo"):
		return nil, errNoRights
	}
	if _, err := p.sys.Run(ctx, Command{Name: "sudo", Args: []string{"-n", "true"}}); err == nil {
		return []string{"sudo", "-n"}, nil
	}
	if ask && p.sys.Terminal {
		return []string{"sudo"}, nil
	}
	return nil, errNoRights
}

// command returns the command by which a user installs packages by hand.
func (p *packages) command(m *manager, names []string) string {
	words := append([]string{m.program, m.install[0]}, names...)
	if m.program == "pacman" {
		words = append([]string{m.program, "-S"}, names...)
	}
	if !m.asUser && p.sys.Geteuid() != 0 {
		words = append([]string{"sudo"}, words...)
	}
	return strings.Join(words, " ")
}

// install installs packages, after a refresh of the lists when there has been none.
func (p *packages) install(ctx context.Context, m *manager, prefix []string, names []string) error {
	p.update(ctx, m, prefix)
	p.report.Start(fmt.Sprintf("installing %s with %s", strings.Join(names, " "), m.program))
	_, err := p.sys.Run(ctx, p.as(prefix, m, append(append([]string{}, m.install...), names...)))
	return err
}

// update refreshes the lists of packages, once. It may fail: the lists at hand may do.
func (p *packages) update(ctx context.Context, m *manager, prefix []string) {
	if p.updated || m.update == nil {
		return
	}
	p.updated = true
	p.report.Start(fmt.Sprintf("refreshing the package lists of %s", m.program))
	if _, err := p.sys.Run(ctx, p.as(prefix, m, m.update)); err != nil && ctx.Err() == nil {
		p.report.Warn(fmt.Sprintf("the package lists may be old: %v", err))
	}
}

// as makes a command of the package manager with the rights in prefix.
func (p *packages) as(prefix []string, m *manager, args []string) Command {
	c := Command{Name: m.program, Args: args, Env: m.env, Log: p.log}
	if len(prefix) == 0 {
		return c
	}
	words := append([]string{}, prefix...)
	if len(m.env) > 0 {
		words = append(append(words, "env"), m.env...) // sudo drops the environment
	}
	words = append(append(words, m.program), args...)
	return Command{Name: words[0], Args: words[1:], Log: p.log, Terminal: p.sys.Terminal}
}

// libtorch returns the packages that bring a libtorch which is new enough.
func (p *packages) libtorch(ctx context.Context, m *manager) ([]string, error) {
	for _, names := range m.libtorch {
		ask := m.query(names[0])
		ask.Env = []string{"LC_ALL=C"} // the answer is read, so that it must be in English
		out, err := p.sys.Run(ctx, ask)
		if err != nil {
			continue
		}
		found := m.version.FindStringSubmatch(out)
		if found == nil {
			continue
		}
		_, n, ok := parseVersion(found[1])
		switch {
		case !ok:
			continue
		case !n.atLeast(minMajor, minMinor):
			return nil, fmt.Errorf("%w: its %s is version %s, and Kelvin needs %d.%d or later", errNoPackage, names[0], found[1],
				minMajor, minMinor)
		}
		return names, nil
	}
	return nil, errNoPackage
}
