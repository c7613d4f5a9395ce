package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// The checksums of gotch.Version, as every go.sum that requires it has them.
const (
	gotchSum    = "h1:J6JCE1C2AfPmM1xk0p46LdzWtfNvbvZZnWdkj9v54jo="
	gotchModSum = "h1:dien16KQcZPg/g+YiEH3q3ldHlKO2//2I2i2Gp5OQcI="
)

// gotchSource returns the folder of gotch's source in Go's module cache, and downloads it there if need be. It asks Go
// in a module of its own inside scratch, so that neither a go.work nor a replace of the user's module has a say, and
// with the checksums in its go.sum, so that Go verifies what it downloads. When somebody has edited the source in the
// module cache, as gotch's own install script does, the archive is unpacked into scratch instead.
func gotchSource(ctx context.Context, sys *System, scratch string) (string, error) {
	version := gotch.Module + "@" + gotch.Version
	files := map[string]string{
		"go.mod": "module kelvin.setup/source\n\ngo " + MinGo + "\n",
		"go.sum": fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", gotch.Module, gotch.Version, gotchSum, gotch.Module,
			gotch.Version, gotchModSum),
	}
	for name, text := range files {
		if err := atomicfile.Write(filepath.Join(scratch, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	out, err := sys.Run(ctx, Command{
		Name: "go", Args: []string{"mod", "download", "-json", version}, Dir: scratch, Env: []string{"GOWORK=off"},
	})
	var got struct{ Dir, Zip, Error string }
	if jsonErr := json.Unmarshal([]byte(out), &got); jsonErr == nil && got.Error != "" {
		err = fmt.Errorf("go mod download: %s", strings.TrimSpace(got.Error))
	} else if err == nil {
		err = jsonErr
	}
	if err != nil {
		return "", fail(err, "check the network, or Go's settings for it (GOPROXY), then run set-up again",
			"the source of %s cannot be had", version)
	}
	if sum, err := dirhash.HashDir(got.Dir, version, dirhash.Hash1); err == nil && sum == gotchSum {
		return got.Dir, nil
	}
	if sum, err := dirhash.HashZip(got.Zip, dirhash.Hash1); err != nil || sum != gotchSum {
		return "", fail(err, "run `go clean -modcache`, then set-up again",
			"the source of %s in Go's module cache (%s) is not the published one", version, got.Dir)
	}
	dir := filepath.Join(scratch, "gotch")
	if err := modzip.Unzip(dir, module.Version{Path: gotch.Module, Version: gotch.Version}, got.Zip); err != nil {
		return "", fail(err, "run `go clean -modcache`, then set-up again", "the archive of %s cannot be unpacked", version)
	}
	return dir, nil
}
