package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/parallel"
)

// load lets clients ask a service at once until they have asked so many times, or for so many seconds where that is 0.
// It returns how long each request took, in ms.
func load(ctx context.Context, s *service, clients, requests int, seconds float64, body string) ([]float64, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var asked atomic.Int64
	more := func() bool {
		if requests > 0 {
			return asked.Add(1) <= int64(requests) && ctx.Err() == nil
		}
		return time.Now().Before(end) && ctx.Err() == nil
	}
	took, failed := make([][]float64, clients), make([]error, clients)
	var group parallel.Group
	for c := range clients {
		group.Go(func() {
			for more() && failed[c] == nil {
				began := time.Now()
				failed[c] = ask(client, s.url, body)
				took[c] = append(took[c], float64(time.Since(began).Microseconds())/1e3)
			}
		})
	}
	group.Wait()
	var all []float64
	for c := range took {
		if failed[c] != nil {
			return nil, failed[c]
		}
		all = append(all, took[c]...)
	}
	return all, ctx.Err()
}

// ask asks for a prediction.
func ask(client *http.Client, url, body string) error {
	r, err := client.Post(url+"/predict", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err == nil && (r.StatusCode != http.StatusOK || !strings.Contains(string(text), `"mean":`)) {
		err = fmt.Errorf("%s: %s", r.Status, text)
	}
	return err
}
