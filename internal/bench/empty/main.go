// Command empty is the floor of every start: a Go program that prints a line.
package main

import "os"

func main() { _, _ = os.Stdout.WriteString("empty\n") }
