package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The files of a checkpoint, which package infer writes: one is replaced in one move, the other grows.
const (
	stateFile = "checkpoint.kelvin"
	drawsFile = "draws.kelvin"
)

// saved is the object of a task's last checkpoint.
type saved struct {
	State  []byte
	Pieces []string // objects with the draws, one after the other
	Bytes  int64    // of all pieces
}

// progressMessage is what a worker tells of a task with each checkpoint.
type progressMessage struct {
	Task  int
	Steps int64
}

// courier takes checkpoints from the folder of a task to the object store and back.
type courier struct {
	*attempt
	dir  string
	last saved
	seen os.FileInfo
}

// restore puts the last checkpoint into the folder.
func (c *courier) restore(ctx context.Context) error {
	body, err := c.desk.get(ctx, c.key("checkpoint"))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var s saved
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&s); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, drawsFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, piece := range s.Pieces {
		var b []byte
		if b, err = c.desk.get(ctx, piece); err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.last = s
	return os.WriteFile(filepath.Join(c.dir, stateFile), s.State, 0o600)
}

// follow sends every new checkpoint until done is closed.
func (c *courier) follow(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			// A checkpoint that cannot be sent costs work after a death, never a result.
			_ = c.send(ctx)
		}
	}
}

// send stores the checkpoint in the folder, if it is new. The draws are read after the state, so that they cover it;
// what is beyond is dropped when they are restored.
func (c *courier) send(ctx context.Context) error {
	path := filepath.Join(c.dir, stateFile)
	info, err := os.Stat(path)
	if err != nil || c.seen != nil && os.SameFile(info, c.seen) && info.ModTime().Equal(c.seen.ModTime()) {
		return err
	}
	next := saved{Pieces: c.last.Pieces, Bytes: c.last.Bytes}
	if next.State, err = os.ReadFile(path); err != nil {
		return err
	}
	piece, err := after(filepath.Join(c.dir, drawsFile), next.Bytes)
	if err != nil {
		return err
	}
	if len(piece) > 0 {
		name := fmt.Sprintf("%s.%d.%s", c.key("piece"), next.Bytes, strings.ToLower(rand.Text()))
		if err := c.desk.put(ctx, name, piece); err != nil {
			return err
		}
		next.Pieces = append(next.Pieces[:len(next.Pieces):len(next.Pieces)], name)
		next.Bytes += int64(len(piece))
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(next); err != nil {
		return err
	}
	if err := c.desk.put(ctx, c.key("checkpoint"), b.Bytes()); err != nil {
		return err
	}
	c.last, c.seen = next, info
	text, err := json.Marshal(progressMessage{c.task, steps(next.State)})
	if err != nil {
		return err
	}
	return c.link.nc.Publish("kelvin.progress."+c.job.ID, text)
}

// forget removes the checkpoint.
func (c *courier) forget(ctx context.Context) { _ = c.desk.objects.Delete(ctx, c.key("checkpoint")) }

// after is what a file has from an offset on.
func after(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// steps is the number of updates that a checkpoint covers: a field of its header, which follows the magic line and its
// own length.
func steps(state []byte) int64 {
	at := bytes.IndexByte(state, '\n') + 1
	if at == 0 || len(state) < at+8 {
		return 0
	}
	n := binary.LittleEndian.Uint64(state[at:])
	rest := state[at+8:]
	if n > uint64(len(rest)) {
		return 0
	}
	var h struct {
		Steps int64 `json:"steps"`
	}
	if json.Unmarshal(rest[:n], &h) != nil {
		return 0
	}
	return h.Steps
}
