package network

import "net/http"

// TransportOf returns what a client of NewClient makes its requests with.
func TransportOf(c *http.Client) *http.Transport { return c.Transport.(guarded).next }
