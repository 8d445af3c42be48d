// looked_at.go - as looked_at.c, in Go alone, so that it is linked statically.
package main

import (
	"fmt"
	"io"
	"os"
)

var sum int

//go:noinline
func burnHere() {
	for i := 0; i < 5000000; i++ {
		sum += i
	}
	fmt.Sprint()
}

//go:noinline
func callHere() {
	burnHere()
	sum++
}

func main() {
	go func() {
		for {
			callHere()
		}
	}()
	fmt.Println("started")
	io.Copy(io.Discard, os.Stdin)
	fmt.Println("fine")
	os.Exit(3)
}
