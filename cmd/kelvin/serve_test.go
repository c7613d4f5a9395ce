package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/parallel"
)

// serve answers until it is told to end, and then ends well. What is wrong with a file, it says.
func TestServe(t *testing.T) {
	read, write := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	code := 0
	var served parallel.Group
	served.Go(func() {
		a := &app{out: io.Discard, err: write}
		code = a.run(ctx, []string{"serve", "../../serve/testdata/app/model.kelvin", "-listen", "localhost:0", "-rows", "2"})
		_ = write.Close()
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	found := regexp.MustCompile(`^serving 200 draws at (\S+),`).FindStringSubmatch(line)
	require.NotNil(t, found, line)
	r, err := http.Post("http://"+found[1]+"/predict", "application/json",
		strings.NewReader(`{"rows": [{"hours": 1, "shop": "north"}]}`))
	require.NoError(t, err)
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	assert.Regexp(t, `^{"predictions":\[{"visits":{"mean":.*},"y":{"mean":`, string(text))
	stop()
	served.Wait()
	assert.Equal(t, exitOK, code)

	for _, c := range []struct {
		args []string
		code int
		word string
	}{
		{[]string{"serve"}, exitUsage, "usage: kelvin serve"},
		{[]string{"serve", "a", "b"}, exitUsage, `"a" and "b"`},
		{[]string{"serve", "none.kelvin"}, exitFailed, "none.kelvin"},
		{[]string{"serve", "main.go"}, exitFailed, "does not begin as an export does"},
		{[]string{"serve", "../../serve/testdata/counts.kelvin"}, exitFailed, "without predictions"},
		{[]string{"serve", "../../serve/testdata/app/model.kelvin", "-cert", "none"}, exitFailed, "none"},
	} {
		var err strings.Builder
		a := &app{out: io.Discard, err: &err}
		assert.Equal(t, c.code, a.run(context.Background(), c.args), c.args)
		assert.Contains(t, err.String(), c.word)
	}
}
