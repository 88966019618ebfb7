package attach

// Path is that of the socket.
func (s *Server) Path() string { return s.path }

// Readers is how many connections are open.
func (s *Server) Readers() int { return len(s.slots) }
