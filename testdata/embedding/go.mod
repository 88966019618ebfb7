module example.test/embedding

go 1.26.0

require heartbeat v0.0.0

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/natefinch/atomic v1.0.1 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

// Until the module has a path with a host, a program takes it from a checkout.
replace heartbeat => ../..
