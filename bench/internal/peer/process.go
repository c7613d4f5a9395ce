package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Process is a group's program: it answers one line of JSON to each.
type Process struct {
	ctx     context.Context
	command *exec.Cmd
	in      *json.Encoder
	out     *bufio.Reader
	pipe    io.Closer // of out
	errors  bytes.Buffer
	close   func()
	ended   error
}

// Start starts a group's program. Each has one thread for an operation: with more, several wait for one another.
func (e *Environments) Start(ctx context.Context, g Group) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, e.interpreter(g), filepath.Join(e.root, "programs", g.Name+"_peer.py"))
	c.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "JAX_PLATFORMS=cpu",
		"CUDA_VISIBLE_DEVICES=", "XDG_CACHE_HOME="+filepath.Join(e.root, "cache"))
	c.Dir = filepath.Join(e.root, "cache")
	p := &Process{ctx: ctx, command: c}
	c.Stderr = &p.errors
	together(c) // httpstan leaves workers behind, which would run beside what is measured next
	c.Cancel = func() error { return end(c) }
	c.WaitDelay = time.Second // its workers may have the streams open still
	in, err := c.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	p.in, p.out, p.pipe = json.NewEncoder(in), bufio.NewReader(out), out
	p.close = func() {
		in.Close()
		cancel()
		c.Wait()
	}
	if err := c.Start(); err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// Request is one line to a program; the answer is a line too.
type Request map[string]any

// Answer is what programs answer.
type Answer struct {
	Error     string   `json:"error"`
	Seconds   float64  `json:"seconds"`   // of compiling, or of sampling
	Compiling float64  `json:"compiling"` // seconds of compiling that sampling or stepping took besides
	Names     []string `json:"names"`     // of the draws
	Chains    int      `json:"chains"`
	Draws     int      `json:"draws"`
	US        float64  `json:"us"`

	WarmupGradients float64 `json:"warmup_gradients"` // of all chains, where the side counts them
	Gradients       float64 `json:"gradients"`        // of the draws
	Divergences     float64 `json:"divergences"`      // of the draws
}

// Ask sends a request. A program that does not answer in time is ended, and answers nothing more.
func (p *Process) Ask(op string, r Request, limit time.Duration) (a Answer, err error) {
	if p.ended != nil {
		return a, p.ended
	}
	r["op"] = op
	late := time.AfterFunc(limit, func() { end(p.command); p.pipe.Close() })
	err = p.in.Encode(r)
	var line []byte
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if inTime := late.Stop(); err != nil {
		end(p.command)
		p.command.Wait() // what it said last has come
		p.ended = fmt.Errorf("the program ended: %s", lastLine(p.errors.Bytes(), err))
		if !inTime {
			p.ended = fmt.Errorf("%s took more than %v", op, limit)
		}
		return a, p.ended
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("its answer %q: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Close ends the program.
func (p *Process) Close() { p.close() }

// ReadDraws reads [chains, draws, names] numbers of an answer.
func ReadDraws(file string, a Answer) (map[string][][]float64, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(raw) != 8*a.Chains*a.Draws*len(a.Names) || len(raw) == 0 {
		return nil, fmt.Errorf("%d bytes of draws for %d chains, %d draws and %d names", len(raw), a.Chains, a.Draws,
			len(a.Names))
	}
	out := map[string][][]float64{}
	for j, name := range a.Names {
		x := make([][]float64, a.Chains)
		for c := range x {
			x[c] = make([]float64, a.Draws)
			for i := range x[c] {
				at := 8 * ((c*a.Draws+i)*len(a.Names) + j)
				x[c][i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[at:]))
			}
		}
		out[name] = x
	}
	if len(out) != len(a.Names) {
		return nil, errors.New("a name is there twice")
	}
	return out, nil
}
