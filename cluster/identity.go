package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/torch"
)

// identity is what must be equal on both sides for draws that are equal bit for bit. CPU may differ: the draws are
// then equal in law, and say so.
type identity struct {
	Build    string `json:"build"`    // hash of the executable
	LibTorch string `json:"libtorch"` // version
	CPU      string `json:"cpu"`
}

var own = sync.OnceValues(func() (identity, error) {
	id := identity{LibTorch: torch.Version(), CPU: processor()}
	path, err := os.Executable()
	if err != nil {
		return id, err
	}
	f, err := os.Open(path)
	if err != nil {
		return id, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return id, err
	}
	id.Build = hex.EncodeToString(sum.Sum(nil)[:16])
	return id, nil
})

// processor is the type of the processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return runtime.GOARCH + " " + strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// differs is an error that names what differs between a job and this worker.
func (want identity) differs(have identity) error {
	for _, d := range []struct{ what, want, have string }{
		{"build", want.Build, have.Build}, {"libtorch", want.LibTorch, have.LibTorch},
	} {
		if d.want != d.have {
			return differ(d.what, d.want, d.have)
		}
	}
	return nil
}

func differ(what, want, have string) error {
	return fmt.Errorf("the %s differs: the job has %s, this worker %s: %w", what, want, have, ErrRefused)
}
