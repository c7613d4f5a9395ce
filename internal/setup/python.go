package setup

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// torchQuery makes Python tell where its torch package is. It does not import the package, which takes seconds. A
// folder that merely has the name torch has no origin.
const torchQuery = `import importlib.util, json, sys
try:
    spec = importlib.util.find_spec("torch")
except Exception:
    spec = None
found = spec is not None and spec.origin is not None
print(json.dumps({
    "dirs": list(spec.submodule_search_locations or []) if found else [],
    "prefix": sys.prefix,
}))`

// place is a folder in which libtorch may be.
type place struct {
	dir    string
	source Source
}

// pythonPlaces returns the folders in which the Pythons on the PATH keep their torch package. Some distributions
// (conda) put the headers and libraries below the prefix of their Python instead.
func pythonPlaces(ctx context.Context, sys *System) []place {
	var places []place
	for _, name := range []string{"python3", "python"} {
		if !sys.has(name) {
			continue
		}
		out, err := sys.Run(ctx, Command{Name: name, Args: []string{"-c", torchQuery}, Dir: os.TempDir(),
			Env: []string{"PYTHONSAFEPATH=1"}})
		if err != nil {
			continue
		}
		var answer struct {
			Dirs   []string `json:"dirs"`
			Prefix string   `json:"prefix"`
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if json.Unmarshal([]byte(lines[len(lines)-1]), &answer) != nil || len(answer.Dirs) == 0 {
			continue
		}
		for _, dir := range append(answer.Dirs, answer.Prefix) {
			p := place{dir, FromPython}
			if dir != "" && dir != sys.path("usr") && !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
	}
	return places
}
