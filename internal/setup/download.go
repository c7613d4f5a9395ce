package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Limits of a download: tries without any progress, and how long a silent server is waited for.
const (
	downloadTries = 5
	downloadStall = time.Minute
)

// download fetches one file. What has arrived is kept in file.part, so that a later try or run goes on from there, if
// the server can and the file there is still the same.
type download struct {
	client   *http.Client
	url      string
	file     string
	sha256   string // empty when no checksum is known
	sum      string // the checksum of the file that is there
	backoff  time.Duration
	stall    time.Duration // zero means downloadStall
	progress func(done, total int64)
}

// partMark says what a .part file is a part of.
type partMark struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// validator returns what If-Range can compare: a strong entity tag or a date.
func (m partMark) validator() string {
	if m.ETag != "" && !strings.HasPrefix(m.ETag, "W/") {
		return m.ETag
	}
	return m.LastModified
}

// permanent is an error that another try does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func (d *download) part() string { return d.file + ".part" }
func (d *download) mark() string { return d.file + ".part.json" }

// run downloads the file, unless it is there, and checks it.
func (d *download) run(ctx context.Context) error {
	if !exists(d.file) {
		if err := os.MkdirAll(filepath.Dir(d.file), 0o755); err != nil {
			return fail(err, "make it writable, or name another cache folder with --cache DIR", "the folder %s cannot be made",
				filepath.Dir(d.file))
		}
		if err := d.fetch(ctx); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(d.part(), d.file), os.Remove(d.mark())); err != nil {
			return err
		}
	}
	return d.check()
}

// fetch tries until the .part file is complete.
func (d *download) fetch(ctx context.Context) error {
	var err error
	for try := 0; try < downloadTries; try++ {
		if try > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(d.backoff << (try - 1)):
			}
		}
		before := size(d.part())
		if err = d.try(ctx); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the download of %s was stopped; the next run goes on from there: %w", d.url, ctx.Err())
		}
		var p permanent
		if errors.As(err, &p) {
			return fail(p.error, "check the address and the network, or get libtorch yourself and name it with --libtorch DIR",
				"%s cannot be downloaded", d.url)
		}
		if size(d.part()) > before {
			try = 0
		}
	}
	return fail(err, "check the network and run set-up again: it goes on from what has arrived",
		"the download of %s broke off", d.url)
}

// try asks for what is missing and appends it.
func (d *download) try(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := cmp.Or(d.stall, downloadStall)
	watch := time.AfterFunc(stall, cancel)
	defer watch.Stop()

	mark, have := d.resumable()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return permanent{err}
	}
	req.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		req.Header.Set("If-Range", mark.validator())
	}
	client := *d.client
	client.CheckRedirect = stayEncrypted
	resp, err := client.Do(req)
	if errors.Is(err, errPlain) {
		return permanent{err}
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	total := resp.ContentLength
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		have = 0
	case code == http.StatusPartialContent:
		start, all, ok := contentRange(resp.Header.Get("Content-Range"))
		if tag := resp.Header.Get("ETag"); !ok || start != have || tag != mark.ETag && tag != "" {
			d.forget()
			return fmt.Errorf("the server answered with another part than was asked for (%s)", resp.Header.Get("Content-Range"))
		}
		total = all
	case code == http.StatusRequestedRangeNotSatisfiable:
		if _, all, ok := contentRange(resp.Header.Get("Content-Range")); ok && all == have {
			return nil
		}
		d.forget()
		return errors.New("the server does not have the rest of what has arrived")
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return fmt.Errorf("the server answers %s", resp.Status)
	default:
		return permanent{fmt.Errorf("the server answers %s", resp.Status)}
	}
	return d.receive(resp, have, total, func() { watch.Reset(stall) })
}

// errPlain is the error of a server that sends the client from https to http, where anybody on the way can answer.
var errPlain = errors.New("the server redirects from https to http, which is refused")

// stayEncrypted follows redirects, as many as Go does, but not from https to another scheme.
func stayEncrypted(req *http.Request, via []*http.Request) error {
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errPlain
	}
	if len(via) >= 10 {
		return errors.New("the server redirects 10 times")
	}
	return nil
}

// receive writes the body behind the first have bytes and checks that the file has its total size, if that is known.
func (d *download) receive(resp *http.Response, have, total int64, alive func()) error {
	if have == 0 {
		d.forget()
		mark := partMark{URL: d.url, ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}
		data, err := json.Marshal(mark)
		if err == nil {
			err = atomicfile.Write(d.mark(), data, 0o644)
		}
		if err != nil {
			return permanent{err}
		}
	}
	f, err := atomicfile.Open(d.part(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return permanent{err}
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, readErr := resp.Body.Read(buf)
		if n > 0 {
			alive()
			if _, err := f.Write(buf[:n]); err != nil {
				return permanent{err}
			}
			have += int64(n)
			if d.progress != nil {
				d.progress(have, total)
			}
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return fmt.Errorf("after %d of %d bytes: %w", have, total, readErr)
		}
	}
	if total >= 0 && have != total {
		if have > total {
			d.forget()
		}
		return fmt.Errorf("%d bytes arrived of %d", have, total)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return permanent{err}
	}
	return nil
}

// resumable returns what the .part file is a part of and its size, which is zero when it cannot be continued.
func (d *download) resumable() (partMark, int64) {
	var mark partMark
	data, err := os.ReadFile(d.mark())
	if err != nil || json.Unmarshal(data, &mark) != nil || mark.URL != d.url || mark.validator() == "" {
		return partMark{}, 0
	}
	return mark, size(d.part())
}

// forget drops what has arrived.
func (d *download) forget() {
	_ = os.Remove(d.part())
	_ = os.Remove(d.mark())
}

// check compares the file with the checksum, if there is one.
func (d *download) check() error {
	var err error
	if d.sum, err = checksum(d.file); err != nil {
		return err
	}
	if d.sha256 != "" && !strings.EqualFold(d.sum, d.sha256) {
		_ = os.Remove(d.file)
		return fail(nil, "run set-up again, which downloads it anew; if you know that the file is right, give its checksum "+
			"with --sha256", "the file from %s has the SHA-256 checksum %s, not %s as it should; it was removed", d.url,
			d.sum, d.sha256)
	}
	return nil
}

// checksum is the SHA-256 of a file.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

var rangeHeader = regexp.MustCompile(`^bytes (?:(\d+)-\d+|\*)/(\d+)$`)

// contentRange reads the first byte and the total size from a Content-Range header.
func contentRange(header string) (start, total int64, ok bool) {
	m := rangeHeader.FindStringSubmatch(header)
	if m == nil {
		return 0, 0, false
	}
	start, _ = strconv.ParseInt(m[1], 10, 64)
	total, err := strconv.ParseInt(m[2], 10, 64)
	return start, total, err == nil
}

// size returns the size of a file, zero for a file that does not exist.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
