package hmc

import "path/filepath"

// CheckpointDone is how many transitions the checkpoint in a folder has.
func CheckpointDone(dir string) (int64, error) {
	s, err := readState(filepath.Join(dir, stateFile))
	if err != nil {
		return 0, err
	}
	return s.Done, nil
}
