// Goroutines that allocate, pass values through channels and collect garbage; prints a checksum that only depends on the
// arguments. What it needs from a kernel: clone with thread-local storage, futexes, signals between threads (the runtime preempts
// with SIGURG), alternate signal stacks, madvise from the collector and the scavenger, timers, epoll and pipes of the poller.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// node is one vertex of a tree that lives long enough to be scanned.
type node struct {
	left, right *node
	value       uint64
	payload     []byte
}

func grow(depth int, value uint64) *node {
	if depth == 0 {
		return &node{value: value, payload: make([]byte, 64+value%512)}
	}
	return &node{grow(depth-1, value*3+1), grow(depth-1, value*5+2), value, nil}
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	for i, b := range n.payload {
		if b != 0 {
			fail("byte %d of a fresh allocation is %d", i, b)
		}
	}
	return n.value + 31*n.left.sum() + 37*n.right.sum()
}

func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

// pipeline sends numbers through a chain of unbuffered channels; each stage adds one.
func pipeline(stages, numbers int) uint64 {
	first := make(chan uint64)
	in := first
	for stage := 0; stage < stages; stage++ {
		out := make(chan uint64)
		go func(in, out chan uint64) {
			for value := range in {
				out <- value + 1
			}
			close(out)
		}(in, out)
		in = out
	}
	go func() {
		for i := 0; i < numbers; i++ {
			first <- uint64(i)
		}
		close(first)
	}()
	var sum uint64
	for value := range in {
		sum += value
	}
	return sum
}

func main() {
	workers := flag.Int("workers", 8, "goroutines that allocate")
	rounds := flag.Int("rounds", 6, "trees that each of them grows")
	depth := flag.Int("depth", 10, "depth of a tree")
	flag.Parse()
	if *workers < 1 || *rounds < 1 || *depth < 1 || *depth > 24 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "goroutines: --workers, --rounds and --depth take numbers from 1 (depth up to 24)")
		os.Exit(2)
	}

	// A spinning goroutine that never calls into the runtime: only a signal can preempt it.
	var stop atomic.Bool
	var spun atomic.Uint64
	go func() {
		for !stop.Load() {
			spun.Add(1)
		}
	}()

	sums := make([]uint64, *workers)
	var group sync.WaitGroup
	for worker := 0; worker < *workers; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for round := 0; round < *rounds; round++ {
				tree := grow(*depth, uint64(worker*1000+round))
				if round%2 == 0 {
					runtime.GC()
				}
				sums[worker] += tree.sum()
				time.Sleep(50 * time.Microsecond)
			}
		}(worker)
	}
	piped := pipeline(20, 500)
	group.Wait()
	stop.Store(true)
	debug.FreeOSMemory()

	if want := uint64(500*499/2 + 500*20); piped != want {
		fail("the pipeline gave %d, not %d", piped, want)
	}
	var total uint64
	for worker, sum := range sums {
		var want uint64
		for round := 0; round < *rounds; round++ {
			want += grow(*depth, uint64(worker*1000+round)).sum()
		}
		if sum != want {
			fail("worker %d: checksum %x, alone it is %x", worker, sum, want)
		}
		total = total*1099511628211 + sum
	}
	var statistics runtime.MemStats
	runtime.ReadMemStats(&statistics)
	if statistics.NumGC == 0 {
		fail("no collection took place")
	}
	fmt.Printf("checksum %016x\nok\n", total)
}
