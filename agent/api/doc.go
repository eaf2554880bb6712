// Package api is the agent's API, local and remote: server, client, roles and tokens.
//
// It is JSON over HTTP, on a local socket and, if configured, over TLS to other hosts. An agent of root asks the kernel
// who calls and decides by role: a JVM's own user sees, pulls, pauses, resumes and detaches what is its own, and for it
// nothing else exists. The socket of any other user's agent has mode 0600. Other hosts may see and pull, with a token
// or a client certificate.
//
//	GET  /v1/pull?id=… -> application/x-tar
//	GET  /v1/status            -> StatusReply
//	POST /v1/attach {AttachRequest} -> AttachReply
//	POST /v1/detach, /v1/pause, /v1/resume {DetachRequest} -> DetachReply
//	POST /v1/reload -> {}: the configuration is read again; refused as a whole if a part of it can not take effect
//
// An error is a status of 400 or above and ErrorReply with a Kind. What a verb exits with is not the API's business:
// cmd/heapcam maps kinds to exit codes.
//
// What it does not do: it records nothing and attaches to nothing itself: Recorder and Config.Attach do.
package api
