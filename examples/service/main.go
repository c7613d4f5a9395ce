// Command service puts a fitted regression behind HTTP:
//
//	go run ./examples/service -fit -draws run.zarr              # fits once and stores the draws
//	go run ./examples/service -draws run.zarr -state state.json # serves them
//
//	curl -d '{"x": [1, 2.5]}' localhost:8080/predict            # predictions with intervals
//	curl -d '{"x": 2, "y": 5.1}' localhost:8080/observe         # updates a Kalman filter
//	curl 'localhost:8080/online?x=2'                            # its prediction
//	curl localhost:8080/healthz
//
// Predictions of stored draws do not change. The filter starts from their mean and covariance, sees each new datum
// once, and its state is on disk before a request is answered, so that a process that was killed goes on where it was.
// Nothing is compiled at run time: the image of the Dockerfile has no compiler.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/store"
)

var (
	fitting = flag.Bool("fit", false, "fit the model and store its draws")
	folder  = flag.String("draws", "run.zarr", "the draws")
	state   = flag.String("state", "state.json", "the state of the filter")
	address = flag.String("listen", "localhost:8080", "where to serve")
)

func main() { command.Main("service", run) }

func run(ctx context.Context) error {
	if *fitting {
		d, err := fit(ctx)
		if err != nil {
			return err
		}
		return store.WriteZarr(*folder, &store.Inference{Posterior: d}, store.ZarrOptions{})
	}
	inf, err := store.Open(*folder)
	if err != nil {
		return err
	}
	if inf.Posterior == nil {
		return fmt.Errorf("%s has no posterior: run with -fit first", *folder)
	}
	s, err := newService(inf.Posterior, *state)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *address, Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() { // requests under way end before the process does
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(end)
	}()
	log.Printf("serving %d draws at %s", inf.Posterior.Total(), *address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
