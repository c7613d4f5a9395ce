package setup

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Text returns the report for people to read. Verbose adds all missing ops and what libtorch says about its threads.
func (r *Report) Text(verbose bool) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		if value := fmt.Sprintf(format, args...); value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, value)
		}
	}
	line("kelvin", "%s, gotch %s", r.Kelvin, r.Gotch)
	line("machine", "%s/%s, %d CPUs", r.OS, r.Arch, runtime.NumCPU())
	line("tools", "%s", joined(r.Go, r.Compiler))
	if l := r.LibTorch; l != nil {
		line("libtorch", "%s in %s (%s)", l.Version, l.Dir, sourceText(l.Source, r.State))
		line("CUDA", "%s", r.cudaText())
		line("BLAS", "%s", r.blasText())
	}
	if t := r.Runtime; t != nil {
		threads := fmt.Sprintf("%d in an operation", t.Threads)
		if t.InteropThreads > 0 {
			threads += fmt.Sprintf(", %d between operations", t.InteropThreads)
		}
		line("threads", "%s", threads)
	}
	for _, l := range r.tierLines() {
		line(l[0], "%s", l[1])
	}
	if r.SetUpAt != nil {
		n := 8
		if verbose {
			n = len(r.MissingOps)
		}
		if len(r.MissingOps) > 0 {
			line("missing ops", "%d: %s", r.MissingCount, shortList(r.MissingOps, n))
		} else {
			line("missing ops", "none")
		}
	}
	line("module", "%s", joined(r.Module, r.ModuleDir))
	line("go.work", "%s", r.GoWork)
	line("gotch copy", "%s", r.GotchCopy)
	line("cache", "%s", r.CacheDir)
	if r.SetUpAt != nil {
		line("set-up", "%s, on %s", r.State, r.SetUpAt.Local().Format(time.DateTime))
	} else {
		line("set-up", "%s", r.State)
	}
	if t := r.Runtime; t != nil && verbose && t.ParallelInfo != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(t.ParallelInfo, "\n"))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", note)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "\nproblem: %s\n", p.Problem)
		if p.Remedy != "" {
			fmt.Fprintf(&b, "  what to do: %s\n", p.Remedy)
		}
	}
	return b.String()
}

// cudaText says whether libtorch has CUDA and which devices it sees.
func (r *Report) cudaText() string {
	switch {
	case !r.LibTorch.CUDA:
		return "no (this libtorch is for the CPU)"
	case r.Runtime == nil:
		return strings.TrimSpace("yes " + r.LibTorch.CUDAVersion)
	case len(r.Runtime.CUDADevices) == 0:
		return strings.TrimSpace("yes "+r.LibTorch.CUDAVersion) + ", no device"
	}
	return strings.TrimSpace("yes "+r.LibTorch.CUDAVersion) + ", " + strings.Join(r.Runtime.CUDADevices, ", ")
}

// blasText names the BLAS by what the libraries show and by what libtorch says about itself.
func (r *Report) blasText() string {
	var loaded string
	if r.Runtime != nil && r.Runtime.BLAS != r.LibTorch.BLAS {
		loaded = r.Runtime.BLAS
	}
	if text := joined(r.LibTorch.BLAS, loaded); text != "" {
		return text
	}
	return "inside libtorch"
}

// sourceText says where a libtorch comes from.
func sourceText(s Source, state string) string {
	text := map[Source]string{
		FromFlag:        "named with --libtorch",
		FromEnvironment: "from $LIBTORCH",
		FromPython:      "a Python package",
		FromSystem:      "the system's package",
		FromDownload:    "downloaded by set-up",
	}[s]
	if state == StateAbsent {
		text += "; set-up would use it"
	}
	return text
}

// joined joins what is not empty.
func joined(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ", ")
}
