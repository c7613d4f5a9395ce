package ccompiler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is dir, or where that is empty kelvin/native in the user's cache folder.
func Folder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "kelvin", "native"), nil
}

// CheckFolder makes sure that a folder is one that this user alone can write to: what it holds is code.
func CheckFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	return CheckOwner(dir, info)
}

// CheckOwner makes sure that a file or folder belongs to this user and that nobody else may write it.
func CheckOwner(path string, info fs.FileInfo) error {
	if uid, ok := owner(info); ok && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d; it must belong to user %d", path, uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write %s: its mode is %o", path, mode)
	}
	return nil
}

// Keeps says where compiled C is kept, and why it cannot be. It changes nothing.
func Keeps() (dir string, err error) {
	if dir, err = Folder(""); err != nil {
		return "", err
	}
	err = CheckFolder(dir)
	there := dir
	for errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there) { // it would be made
		there = filepath.Dir(there)
		if _, err = os.Stat(there); err == nil {
			break
		}
	}
	if err == nil {
		if err = writable(there); err != nil {
			err = fmt.Errorf("%s cannot be written to: %w", there, err)
		}
	}
	return dir, err
}
