// Command service puts a fitted regression behind HTTP:
//
//	go run ./examples/service -fit -draws run.zarr -design design.json              # fits once and stores
//	go run ./examples/service -draws run.zarr -design design.json -state state.json # serves that
//
//	curl -d '{"rows": [{"hours": 1, "shop": "north"}]}' localhost:8080/predict             # with intervals
//	curl -d '{"rows": [{"hours": 2, "shop": "south"}], "y": [5.1]}' localhost:8080/observe # updates a Kalman filter
//	curl -d '{"rows": [{"hours": 2, "shop": "south"}]}' localhost:8080/online              # its predictions
//	curl localhost:8080/healthz
//
// A client that heard no answer to /observe does not know whether its data were counted. It sends them again with the
// header that it sent them with, and they count once, also where the service was restarted meanwhile:
//
//	curl -H 'Idempotency-Key: order-17' -d '{"rows": [{"hours": 2, "shop": "south"}], "y": [5.1]}' localhost:8080/observe
//
// The last thousand keys are remembered, in the file of the state.
//
// Rows are those of the training data. The design, stored beside the draws, makes the numbers of the model from them; a
// shop that it does not know is an error that names it.
//
// Predictions of stored draws do not change. The filter starts from their mean and covariance, sees each new datum
// once, and its state is on disk before a request is answered, so that a process that was killed goes on where it was.
// A second process on the same state is refused, a state that was damaged too. Two seconds after SIGTERM the service
// takes no more connections; those that it has not taken by then are reset, and nothing of them is counted. All other
// requests are answered.
// Nothing is compiled at run time: the image of the Dockerfile has no compiler.
//
// Where nothing is updated, the file of -export is all that a service needs, and no libtorch:
//
//	go run ./examples/service -fit -export model.kelvin
//	kelvin serve model.kelvin
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/store"
)

var (
	fitting  = flag.Bool("fit", false, "fit the model and store its draws")
	folder   = flag.String("draws", "run.zarr", "the draws")
	known    = flag.String("design", "design.json", "the design of the data")
	state    = flag.String("state", "state.json", "the state of the filter")
	exported = flag.String("export", "", "with -fit: write the model to this file too, for kelvin serve")
	address  = flag.String("listen", "localhost:8080", "where to serve")
)

const (
	// readWait is how long a client may take to send a request.
	readWait = 10 * time.Second
	// farewell is how long requests are still answered after SIGTERM. net/http drops what it reads after Shutdown.
	farewell = 2 * time.Second
)

func main() { command.Main("service", run) }

func run(ctx context.Context) error {
	if *fitting {
		d, design, err := fit(ctx)
		if err != nil {
			return err
		}
		if err := keep(*known, design); err != nil {
			return err
		}
		if *exported != "" {
			if err := export(*exported, d); err != nil {
				return err
			}
		}
		return store.WriteZarr(*folder, &store.Inference{Posterior: d}, store.ZarrOptions{})
	}
	design, err := load(*known)
	if err != nil {
		return err
	}
	inf, err := store.Open(*folder)
	if err != nil {
		return err
	}
	if inf.Posterior == nil {
		return fmt.Errorf("%s has no posterior: run with -fit first", *folder)
	}
	lock, err := atomicfile.TakeLock(*state + ".lock") // two processes would overwrite each other's updates
	if err != nil {
		return fmt.Errorf("the state %s: %w", *state, err)
	}
	defer func() { _ = lock.Release() }()
	s, err := newService(inf.Posterior, design, *state)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *address, Handler: leaving(ctx, s.handler()), ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout: readWait, IdleTimeout: time.Minute}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		time.Sleep(farewell)
		end, cancel := context.WithTimeout(context.Background(), 2*readWait)
		defer cancel()
		stopped <- server.Shutdown(end)
	}()
	log.Printf("serving %d draws at %s", inf.Posterior.Total(), *address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// leaving tells clients to close their connections once ctx ends.
func leaving(ctx context.Context, to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		to.ServeHTTP(w, r)
	})
}

// keep writes the design, and load reads it.
func keep(path string, design *data.Design) error {
	text, err := json.Marshal(design)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o644)
}

func load(path string) (*data.Design, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: run with -fit first", err)
	}
	design := &data.Design{}
	if err := json.Unmarshal(text, design); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return design, nil
}
