package setup

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// damagedArchive is an archive that cannot be what was published.
type damagedArchive struct {
	entry string
	err   error
}

func (d *damagedArchive) Error() string {
	if d.entry == "" {
		return d.err.Error()
	}
	return fmt.Sprintf("%s: %v", d.entry, d.err)
}

func (d *damagedArchive) Unwrap() error { return d.err }

// errOutside refuses a name that leads out of the folder into which an archive is unpacked.
var errOutside = errors.New("leads out of the archive's folder")

// unzip unpacks what keep chooses of an archive, nil everything, into the existing folder dst. Every file's checksum
// is verified, and nothing is written outside dst. The error is a *damagedArchive when the archive, not the disk, is
// at fault.
func unzip(ctx context.Context, archive, dst string, keep func(name string) bool) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return &damagedArchive{err: err}
		}
		return err
	}
	defer r.Close()
	root, err := os.OpenRoot(dst)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, entry := range r.File {
		if ctx.Err() != nil {
			return fmt.Errorf("unpacking was stopped: %w", ctx.Err())
		}
		if keep != nil && !keep(entry.Name) {
			continue
		}
		if err := unzipEntry(root, entry); err != nil {
			if isDamage(err) {
				return &damagedArchive{entry: entry.Name, err: err}
			}
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
	}
	return nil
}

// isDamage says whether an error comes from the archive itself.
func isDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) || errors.Is(err, errOutside)
}

// unzipEntry writes one file, folder or link.
func unzipEntry(root *os.Root, entry *zip.File) error {
	name := strings.TrimSuffix(entry.Name, "/")
	if strings.Contains(name, `\`) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return errOutside
	}
	if entry.FileInfo().IsDir() {
		return root.MkdirAll(name, 0o755)
	}
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if entry.Mode()&fs.ModeSymlink != 0 {
		return unzipLink(root, name, in)
	}
	if !entry.Mode().IsRegular() {
		return fmt.Errorf("%w: it is neither a file, a folder nor a link", zip.ErrFormat)
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, entry.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // compares the checksum at the end
	return errors.Join(err, out.Close())
}

// unzipLink makes a symbolic link, whose target must lie inside the archive.
func unzipLink(root *os.Root, name string, in io.Reader) error {
	const longest = 4096
	target, err := io.ReadAll(io.LimitReader(in, longest))
	if err != nil {
		return err
	}
	to := string(target)
	if path.IsAbs(to) || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), to))) {
		return errOutside
	}
	return root.Symlink(to, name)
}
