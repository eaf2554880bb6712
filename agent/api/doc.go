// Package api is the agent's API, local and remote: server, client, roles and tokens.
//
// It is JSON over HTTP, on a local socket and, if configured, over TLS to other hosts. An agent that runs as root asks
// the kernel for the caller's user and decides by role. The user of a JVM may see, pull, pause, resume and detach its
// own recordings, and does not learn of any other. The socket of an agent that does not run as root has mode 0600.
// Callers from other hosts may see and pull, with a token or a client certificate.
//
//	GET  /v1/pull?id=… -> application/x-tar
//	GET  /v1/status            -> StatusReply
//	POST /v1/attach {AttachRequest} -> AttachReply
//	POST /v1/detach, /v1/pause, /v1/resume {DetachRequest} -> DetachReply
//	POST /v1/reload -> {}: the configuration is read again; refused as a whole if a part of it cannot take effect
//
// An error is a status of 400 or above and ErrorReply with a Kind. cmd/heapcam maps kinds to exit
// codes.
//
// What it does not do: it does not record or attach. Recorder and Config.Attach do.
package api
