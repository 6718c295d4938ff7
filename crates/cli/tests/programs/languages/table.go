// Four goroutines read a table that the first one filled.
package main

import (
	"fmt"
	"sync"
)

const count = 1 << 18

func main() {
	table := make([]int64, count)
	for at := range table {
		table[at] = 1
	}
	var all sync.WaitGroup
	sums := make([]int64, 4*8)
	for part := 0; part < 4; part++ {
		all.Add(1)
		go func(part int) {
			defer all.Done()
			for at := part; at < count; at += 8 {
				sums[part*8] += table[at]
			}
		}(part)
	}
	all.Wait()
	fmt.Println(sums[0] + sums[8] + sums[16] + sums[24])
}
