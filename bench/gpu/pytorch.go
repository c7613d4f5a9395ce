package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

//go:embed step.py
var program []byte

// The step of both sides, and how far log posterior and gradient may be apart, relative to the largest number.
const (
	rate       = 1e-4
	alpha      = 1.0
	difference = 1e-4
)

// stepRow is an update of SGHMC on a network, beside PyTorch's. Times are medians over the rounds.
type stepRow struct {
	Network    string     `json:"network"`
	Version    string     `json:"pytorch_version,omitempty"`
	PyTorch    float64    `json:"pytorch_ms"`
	Kelvin     float64    `json:"kelvin_ms"`
	Ratio      float64    `json:"ratio"`
	Quartiles  [2]float64 `json:"ratio_quartiles"`
	Rounds     int        `json:"rounds"`
	Difference float64    `json:"difference"`
	Error      string     `json:"error,omitempty"`
}

// pytorch measures each network. A Python that is not there is no error of the device.
func (r *report) pytorch(ctx context.Context, o options) error {
	out, err := exec.CommandContext(ctx, o.python, "-c", "import torch").CombinedOutput()
	var failures []error
	for _, a := range architectures {
		row := stepRow{Network: a.name}
		if err != nil {
			row.Error = fmt.Sprintf("not run: %s has no PyTorch (see -python): %v %s", o.python, err,
				lastLine(string(out)))
		} else if err := row.measure(ctx, a, o); err != nil {
			row.Error = err.Error()
			failures = append(failures, fmt.Errorf("%s: %w", a.name, err))
		}
		r.PyTorch = append(r.PyTorch, row)
	}
	return errors.Join(failures...)
}

func (row *stepRow) measure(ctx context.Context, a architecture, o options) error {
	dir, err := os.MkdirTemp("", "kelvin-gpu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := a.on(o.device)
	if err != nil {
		return err
	}
	if err := t.write(dir); err != nil {
		return err
	}
	peer, err := startPeer(ctx, o, dir)
	if err != nil {
		return err
	}
	defer peer.stop()
	row.Version = peer.version
	if row.Difference, err = t.check(dir); err != nil {
		return err
	}
	update, free, err := t.sghmc()
	if err != nil {
		return err
	}
	defer free()
	sides := [2]bench.Side{warmed(peer.steps), warmed(bench.Calls(update))}
	var theirs, ours, ratios []float64
	for start := time.Now(); len(ratios) < 3 || time.Since(start) < o.seconds; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ns, err := bench.Round(2, sides, [2]int{1, 1})
		if err != nil {
			return err
		}
		theirs, ours, ratios = append(theirs, ns[0]/1e6), append(ours, ns[1]/1e6), append(ratios, ns[1]/ns[0])
	}
	row.PyTorch, row.Kelvin, row.Rounds = bench.Quantile(theirs, 0.5), bench.Quantile(ours, 0.5), len(ratios)
	row.Ratio = bench.Quantile(ratios, 0.5)
	row.Quartiles = [2]float64{bench.Quantile(ratios, 0.25), bench.Quantile(ratios, 0.75)}
	return nil
}

// warmed makes one call that does not count before those that do.
func warmed(side bench.Side) bench.Side {
	return func(n int) (float64, error) {
		if _, err := side(1); err != nil {
			return 0, err
		}
		return side(n)
	}
}

// sghmc makes updates of Kelvin's method, each of which waits for the device.
func (t *training) sghmc() (update func() error, free func(), err error) {
	transform, err := t.method().Build(t.target)
	if err != nil {
		return nil, nil, err
	}
	state, err := infer.Init(transform, t.start, 4)
	if err != nil {
		return nil, nil, err
	}
	return func() error {
		next, _, err := infer.Advance(transform, state, t.batch)
		if err != nil {
			return err
		}
		state = next
		return torch.Synchronize()
	}, func() { infer.Free(state) }, nil
}

// check compares log posterior and gradient with those that PyTorch wrote.
func (t *training) check(dir string) (float64, error) {
	want, err := readNumbers(filepath.Join(dir, "answer"))
	if err != nil {
		return 0, err
	}
	g, err := infer.NewGradient(t.target)
	if err != nil {
		return 0, err
	}
	var have []float64
	if err := torch.Do(func(*torch.Scope) error {
		e, err := g.ValueAndGrad(t.start, t.batch, 0)
		if err == nil {
			have = append(e.Values, torch.Must(torch.ToSlice[float64](e.Grad))...)
		}
		return err
	}); err != nil {
		return 0, err
	}
	if len(have) != len(want) {
		return 0, fmt.Errorf("%d numbers from Kelvin and %d from PyTorch", len(have), len(want))
	}
	worst := math.Abs(have[0]-want[0]) / max(1, math.Abs(want[0]))
	largest, apart := 0.0, 0.0
	for i, w := range want[1:] {
		largest, apart = max(largest, math.Abs(w)), max(apart, math.Abs(have[i+1]-w))
	}
	worst = max(worst, apart/largest)
	if !(worst <= difference) {
		return worst, fmt.Errorf("log posterior or gradient differ from PyTorch's by %.2g, where %g is allowed", worst,
			difference)
	}
	return worst, nil
}

// write puts what PyTorch reads into a folder; numbers are float64.
func (t *training) write(dir string) error {
	type site struct {
		Name  string `json:"name"`
		Shape []int  `json:"shape"`
	}
	sites := []site{}
	for _, s := range t.start.Layout.Sites {
		sites = append(sites, site{s.Name, append([]int{}, s.Shape...)})
	}
	text, err := json.Marshal(map[string]any{"network": t.key, "x": t.shape, "sites": sites, "data": t.data,
		"rate": rate, "alpha": alpha})
	if err != nil {
		return err
	}
	theta, err := t.start.Values()
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Write(filepath.Join(dir, "network.json"), text, 0o600),
		atomicfile.Write(filepath.Join(dir, "step.py"), program, 0o600), writeNumbers(filepath.Join(dir, "theta"), theta),
		writeNumbers(filepath.Join(dir, "x"), t.x), writeNumbers(filepath.Join(dir, "y"), t.y))
}

func writeNumbers(path string, x []float64) error {
	data, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

func readNumbers(path string) ([]float64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x := make([]float64, len(data)/8)
	_, err = binary.Decode(data, binary.LittleEndian, x)
	return x, err
}

// peer is a running step.py.
type peer struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    strings.Builder
	version string
}

func startPeer(ctx context.Context, o options, dir string) (*peer, error) {
	where := "cpu"
	if o.device != gotch.CPU {
		where = "cuda:0"
	}
	p := &peer{command: exec.CommandContext(ctx, o.python, filepath.Join(dir, "step.py"), dir, where)}
	p.command.Stderr = &p.said
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	var first struct {
		Version string `json:"version"`
	}
	if err := p.answer(&first); err != nil {
		p.stop()
		return nil, err
	}
	p.version = first.Version
	return p, nil
}

// answer reads one line. If the program ended without one, the error is what it said last.
func (p *peer) answer(to any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.stop()
		return fmt.Errorf("PyTorch ended: %s", lastLine(p.said.String()))
	}
	return json.Unmarshal(line, to)
}

// steps makes n steps and returns the nanoseconds of one.
func (p *peer) steps(n int) (float64, error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return 0, err
	}
	var took struct {
		Seconds float64 `json:"seconds"`
	}
	err := p.answer(&took)
	return 1e9 * took.Seconds, err
}

// stop ends the program, which ends when nothing more is asked. A second call does nothing.
func (p *peer) stop() {
	p.in.Close()
	_ = p.command.Wait() // what it said is in the error already
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
