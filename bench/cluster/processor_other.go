//go:build !unix

package main

import (
	"errors"
	"time"
)

func processor() (time.Duration, error) {
	return 0, errors.New("the processor time of a process is measured on Unix alone")
}
