package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// content is what the servers of these tests hold.
var content = bytes.Repeat([]byte("libtorch, but small. "), 10_000)

// server answers with one handler after the other; the last one stays. It keeps the requests.
type server struct {
	*httptest.Server
	requests []*http.Request
}

func serve(t *testing.T, handlers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests = append(s.requests, r)
		handlers[min(len(s.requests), len(handlers))-1](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// whole serves data with an entity tag, and parts of it, as a good server does.
func whole(data []byte, tag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "x.zip", time.Time{}, bytes.NewReader(data))
	}
}

// broken serves the first n bytes of data and drops the connection.
func broken(data []byte, tag string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// status answers with a code.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// get is a download from s into a new folder.
func get(t *testing.T, s *server) *download {
	return &download{client: s.Client(), url: s.URL + "/x.zip", file: filepath.Join(t.TempDir(), "downloads/x.zip"),
		backoff: time.Millisecond}
}

// complete checks that the file has arrived and nothing is left beside it.
func complete(t *testing.T, d *download, want []byte) {
	t.Helper()
	assert.True(t, bytes.Equal(want, []byte(read(t, d.file))), "the file is not what the server has")
	assert.NoFileExists(t, d.part())
	assert.NoFileExists(t, d.mark())
}

func TestDownload(t *testing.T) {
	s := serve(t, whole(content, `"a"`))
	d := get(t, s)
	var last, of int64
	d.progress = func(done, total int64) { last, of = done, total }
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
	assert.EqualValues(t, len(content), last)
	assert.EqualValues(t, len(content), of)
	assert.Empty(t, s.requests[0].Header.Get("Range"))

	require.NoError(t, d.run(context.Background()), "what is there is not downloaded again")
	assert.Len(t, s.requests, 1)
}

func TestDownloadResumes(t *testing.T) {
	s := serve(t, broken(content, `"a"`, 70_000), whole(content, `"a"`))
	d := get(t, s)
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
	require.Len(t, s.requests, 2)
	assert.Equal(t, "bytes=70000-", s.requests[1].Header.Get("Range"))
	assert.Equal(t, `"a"`, s.requests[1].Header.Get("If-Range"))
}

func TestDownloadResumesInTheNextRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := serve(t, broken(content, `"a"`, 70_000), func(http.ResponseWriter, *http.Request) {
		cancel() // the user stops the run
		panic(http.ErrAbortHandler)
	}, whole(content, `"a"`))
	d := get(t, s)
	err := d.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the next run goes on from there")
	assert.NoFileExists(t, d.file)

	again := &download{client: s.Client(), url: d.url, file: d.file}
	require.NoError(t, again.run(context.Background()))
	complete(t, again, content)
	assert.Equal(t, "bytes=70000-", s.requests[2].Header.Get("Range"))
}

func TestDownloadFromAServerWithoutRanges(t *testing.T) {
	plain := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"a"`)
		_, _ = w.Write(content)
	}
	s := serve(t, broken(content, `"a"`, 70_000), plain)
	d := get(t, s)
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
	assert.NotEmpty(t, s.requests[1].Header.Get("Range"), "it was asked")
}

func TestDownloadOfAFileThatChanges(t *testing.T) {
	other := bytes.ToUpper(content)
	t.Run("the server compares", func(t *testing.T) {
		s := serve(t, broken(content, `"a"`, 70_000), whole(other, `"b"`))
		d := get(t, s)
		require.NoError(t, d.run(context.Background()))
		complete(t, d, other)
	})
	t.Run("the server does not compare", func(t *testing.T) {
		s := serve(t, broken(content, `"a"`, 70_000), func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			whole(other, `"b"`)(w, r)
		})
		d := get(t, s)
		require.NoError(t, d.run(context.Background()))
		complete(t, d, other)
		assert.Len(t, s.requests, 3, "the foreign part is refused")
	})
	t.Run("the server has no validator", func(t *testing.T) {
		s := serve(t, broken(content, "", 70_000), whole(other, ""))
		d := get(t, s)
		require.NoError(t, d.run(context.Background()))
		complete(t, d, other)
		assert.Empty(t, s.requests[1].Header.Get("Range"), "without one, nothing says that the rest fits")
	})
}

func TestDownloadTruncated(t *testing.T) {
	s := serve(t, broken(content, `"a"`, 70_000), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"a"`)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 70000-%d/%d", len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent) // and nothing more
	})
	d := get(t, s)
	err := d.run(context.Background())
	require.ErrorContains(t, err, fmt.Sprintf("70000 bytes arrived of %d", len(content)))
	assert.ErrorContains(t, err, "the download of "+d.url+" broke off")
	assert.Contains(t, remedyOf(t, err), "run set-up again: it goes on from what has arrived")
	assert.NoFileExists(t, d.file)
	assert.EqualValues(t, 70_000, size(d.part()))
	assert.Len(t, s.requests, downloadTries)
}

func TestDownloadThatWasCompleteButNotRenamed(t *testing.T) {
	s := serve(t, whole(content, `"a"`))
	d := get(t, s)
	write(t, d.part(), string(content))
	write(t, d.mark(), fmt.Sprintf(`{"url": %q, "etag": "\"a\""}`, d.url))
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)

	// Too much is no part of the file.
	d = get(t, s)
	write(t, d.part(), string(content)+"more")
	write(t, d.mark(), fmt.Sprintf(`{"url": %q, "etag": "\"a\""}`, d.url))
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
}

func TestDownloadAnswers(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden} {
		s := serve(t, status(code))
		d := get(t, s)
		err := d.run(context.Background())
		require.ErrorContains(t, err, d.url+" cannot be downloaded: the server answers "+fmt.Sprint(code))
		assert.Contains(t, remedyOf(t, err), "--libtorch DIR")
		assert.Len(t, s.requests, 1, "another try would not help")
	}
	s := serve(t, status(503), status(429), whole(content, `"a"`))
	d := get(t, s)
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
}

func TestDownloadFromASilentServer(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:1000])
		w.(http.Flusher).Flush()
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}, whole(content, `"a"`))
	d := get(t, s)
	d.stall = 100 * time.Millisecond
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
	assert.Equal(t, "bytes=1000-", s.requests[1].Header.Get("Range"))
}

func TestDownloadChecksum(t *testing.T) {
	s := serve(t, whole(content, `"a"`))
	d := get(t, s)
	sum := sha256.Sum256(content)
	d.sha256 = strings.ToUpper(hex.EncodeToString(sum[:]))
	require.NoError(t, d.run(context.Background()))
	require.Equal(t, hex.EncodeToString(sum[:]), d.sum)

	d.sha256 = strings.Repeat("0", 64)
	err := d.run(context.Background())
	require.ErrorContains(t, err, "has the SHA-256 checksum "+hex.EncodeToString(sum[:])+", not 0000")
	assert.NoFileExists(t, d.file)
}

// A server that leads from https to http is refused; one that leads on by https is followed.
func TestDownloadStaysEncrypted(t *testing.T) {
	plain := serve(t, whole(content, `"a"`))
	secure := httptest.NewTLSServer(whole(content, `"a"`))
	t.Cleanup(secure.Close)
	for _, to := range []string{plain.URL, secure.URL} {
		from := httptest.NewTLSServer(http.RedirectHandler(to+"/x.zip", http.StatusFound))
		t.Cleanup(from.Close)
		d := &download{client: from.Client(), url: from.URL + "/x.zip", file: filepath.Join(t.TempDir(), "downloads/x.zip"),
			backoff: time.Millisecond}
		err := d.run(context.Background())
		if to == secure.URL { // both servers have the certificate of httptest
			require.NoError(t, err)
			complete(t, d, content)
			continue
		}
		require.ErrorIs(t, err, errPlain)
		require.ErrorContains(t, err, "redirects from https to http, which is refused")
		assert.NoFileExists(t, d.file)
		assert.Empty(t, plain.requests, "nothing was asked without encryption")
	}
	// From http to http, as on a local mirror, is as safe as it was.
	from := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+"/x.zip", http.StatusFound)
	})
	d := get(t, from)
	require.NoError(t, d.run(context.Background()))
	complete(t, d, content)
	t.Log("seen: https to http refused")
}

func TestDownloadToAFullOrForbiddenPlace(t *testing.T) {
	s := serve(t, whole(content, `"a"`))
	d := get(t, s)
	write(t, filepath.Dir(d.file), "a file where the folder should be")
	err := d.run(context.Background())
	require.ErrorContains(t, err, "cannot be made")

	d = get(t, s)
	require.NoError(t, os.MkdirAll(d.part(), 0o755)) // cannot be opened for writing
	write(t, filepath.Join(d.part(), "x"), "")
	err = d.run(context.Background())
	require.ErrorContains(t, err, "is a folder")
	assert.Len(t, s.requests, 1, "another try would not help")
}
