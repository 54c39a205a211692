package bench

import "io"

// pipes are the two streams of one side of a connection.
type pipes struct {
	in  io.ReadCloser
	out io.WriteCloser
}

func newPipes() (client, server pipes) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	return pipes{fromServer, toServer}, pipes{fromClient, toClient}
}
