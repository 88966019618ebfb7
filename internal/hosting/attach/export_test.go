package attach

// Path is that of the socket.
func (s *Server) Path() string { return s.path }

// Connections is how many are open.
func (s *Server) Connections() int { return len(s.slots) }
